"""Growth of time and memory of Nyström attention with tokens, relative to exact attention in the same run.

Forward and backward pass of one example, 64 landmarks, with and without the convolution of the values, on one CPU
thread. "exact" is torch's fused kernel, which stores no scores; "exact, written out" is the formula. Time is measured
in turns; memory is the peak growth of a separate process. A slope is fitted to the logs of tokens and of time or
memory.
"""

import math
import statistics
import time

import torch
from torch import Tensor, nn

from benchmarks.form import Figure, child_peaks_mb, main
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.nystrom import Nystrom

TOKENS = (512, 1024, 2048, 4096, 8192)
BATCH, HEADS, HEAD_DIM, LANDMARKS = 1, 2, 32, 64


class WrittenOut(nn.Module):
    """softmax(q k^T / sqrt(K)) v with materialized scores."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Map three [B, H, N, K] to one."""
        return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v


KINDS = {
    "nystrom": Nystrom(LANDMARKS).build(HEADS),
    "nystrom, convolution": Nystrom(LANDMARKS, kernel=35).build(HEADS),
    "exact": SoftmaxAttention(causal=False),
    "exact, written out": WrittenOut(),
}


def once(kind: str, tokens: int) -> float:
    """Return the seconds of one forward and backward pass."""
    q, k, v = (torch.randn(BATCH, HEADS, tokens, HEAD_DIM, requires_grad=True) for _ in range(3))
    began = time.perf_counter()
    KINDS[kind](q, k, v).sum().backward()
    return time.perf_counter() - began


def extra_mb(kind: str, lengths: tuple[int, ...]) -> dict[int, float]:
    """Return sequence length -> peak memory growth of a process in megabytes, beyond that of 128 tokens."""
    before, *peaks = child_peaks_mb(
        "import torch, benchmarks.nystrom as n\n"
        "torch.set_num_threads(1)\n"
        f"for tokens in {(128, *lengths)}:\n"
        f"    n.once({kind!r}, tokens); peak()"
    )
    return {tokens: peak - before for tokens, peak in zip(lengths, peaks, strict=True)}


def slope(values: dict[int, float]) -> float:
    """Return the slope of log values over log tokens."""
    return statistics.linear_regression(
        [math.log(tokens) for tokens in values], [math.log(max(value, 1e-9)) for value in values.values()]
    ).slope


def figures(quick: bool) -> dict[str, Figure]:
    """Measure slopes, and time and memory at each length."""
    torch.set_num_threads(1)
    lengths = (TOKENS[0], TOKENS[2], TOKENS[-1]) if quick else TOKENS
    seconds: dict[str, dict[int, float]] = {kind: {} for kind in KINDS}
    memory = {kind: extra_mb(kind, lengths) for kind in KINDS}
    for tokens in lengths:
        turns = [{kind: once(kind, tokens) for kind in KINDS} for _ in range(1 + (2 if quick else 7))][1:]
        for kind in KINDS:
            seconds[kind][tokens] = statistics.median(turn[kind] for turn in turns)
    ours, *others = KINDS
    figures_by_name = {
        f"{name}_growth": Figure(
            slope(by_tokens[ours]),
            "slope",
            "lower",
            target=1.1,
            peers={kind: slope(by_tokens[kind]) for kind in others},
        )
        for name, by_tokens in (("time", seconds), ("memory", memory))
    }
    for tokens in lengths:
        peers = {kind: 1000 * seconds[kind][tokens] for kind in others}
        figures_by_name[f"ms_{tokens}"] = Figure(1000 * seconds[ours][tokens], "ms", "lower", peers=peers)
        peers = {kind: memory[kind][tokens] for kind in others}
        figures_by_name[f"peak_mb_{tokens}"] = Figure(memory[ours][tokens], "MB", "lower", peers=peers)
    return figures_by_name


if __name__ == "__main__":
    main("nystrom", figures)
