"""Training-step time and peak memory of every topology relative to resnet's, at the same shape and batch.

On a GPU, the shapes are the two that the papers measured, in bf16; on a CPU, a small one in fp32 with one thread. Each
topology runs as it is ("eager") and "recomputed": with `recompute_mixing`, which recomputes its most expensive
operation in the backward pass. `compiled_step` measures compiled steps. A step is the forward pass of a causal
transformer stack without vocabulary, the backward pass and AdamW. Ratios are medians over rounds, taken round by round.
Peers are published ratios (nas/analysis/overheads.csv). With --quick, two blocks and a batch of one are measured, and
no target applies.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import nn

from benchmarks.form import Figure, main
from nas.analysis.compare import paper_overhead
from nas.costs.profile.memory import peak_of
from nas.costs.profile.timing import synchronize
from nas.environment.device import available_device
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.transformer import TransformerStyle, build_transformer
from search_spaces.topologies import registry
from search_spaces.topologies.decay import split_by_decay
from tasks.training.allocator import keep_freed_memory
from tasks.training.compilation import compile_network

STYLE = TransformerStyle(Norm("layer", 1e-5), GELU, attention_bias=True, feed_forward_bias=True, num_embeddings=1)


@dataclass(frozen=True, slots=True)
class Shape:
    """A stack with its input's size."""

    architecture: Architecture
    tokens: int
    batch: int


GPU_SHAPES = {
    "d512": Shape(Architecture(depth=24, width=512, heads=8, head_dim=64, hidden=2048), 128, 256),
    "d1024": Shape(Architecture(depth=24, width=1024, heads=16, head_dim=64, hidden=4096), 1024, 16),
}
CPU_SHAPES = {"cpu": Shape(Architecture(depth=6, width=256, heads=4, head_dim=64, hidden=1024), 128, 8)}

TOPOLOGIES = (
    *(name for name in registry.TOPOLOGIES.names() if name not in ("none", "resnet", "grn-v1", "grn-v2", "grn-v3")),
    *("grn-v1(k=2)", "grn-v2(k=2)", "grn-v3(k=2)", "dca(k=2)", "attnres(every=4)", "attnres(heads=4)"),
    *("attnres-delta(gated=false)", "hyper(dynamic=false)", "laurel-rw(rank=16)", "frac(parts=2)"),
)
TARGETS = {"dca(k=2)": 1.2, "rmt": 1.4, "hyper": 1.4}
"""For eager steps on a CPU."""

MEMORY_TARGET = 1.5
"""For `recompute_mixing` on a CPU."""

Step = Callable[[], None]
NamedFigure = tuple[str, Figure]
Mode = Literal["eager", "recomputed", "compiled"]
"""Uncompiled; with `recompute_mixing`; with torch.compile."""


def step_of(shape: Shape, topology: str, device: torch.device, mode: Mode) -> Step:
    """Return a training step of a stack with that topology."""
    torch.manual_seed(0)
    with device:
        stack = build_transformer(
            replace(shape.architecture, topology=topology), STYLE, lambda block: SoftmaxAttention(causal=True)
        )
        x = torch.randn(shape.batch, shape.tokens, shape.architecture.width)
    stack.recompute_mixing = mode == "recomputed"
    decay, exempt = split_by_decay(stack)
    optimizer = torch.optim.AdamW([{"params": decay}, {"params": exempt, "weight_decay": 0.0}], lr=1e-4, fused=True)
    if mode == "compiled":
        compile_network(stack)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            y = stack(x)
        y.float().square().mean().backward()
        nn.utils.clip_grad_norm_(stack.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        synchronize(device)

    return step


def ratio_of(step: Step, plain: Step, rounds: int) -> float:
    """Return a step's time relative to resnet's, the median over rounds of both."""
    step(), plain()
    ratios = []
    for _ in range(rounds):
        began = time.perf_counter()
        step()
        between = time.perf_counter()
        plain()
        ratios.append((between - began) / (time.perf_counter() - between))
    return statistics.median(ratios)


def memory(shape: Shape, topology: str, device: torch.device, mode: Mode) -> int:
    """Return the peak bytes of building the stack and of a step."""
    return peak_of(lambda: step_of(shape, topology, device, mode)(), device)


def step_ratios(shape: Shape, device: torch.device, mode: Mode, rounds: int) -> Iterator[tuple[str, float]]:
    """Yield each topology with its step time relative to resnet's."""
    plain = step_of(shape, "resnet", device, mode)
    for topology in TOPOLOGIES:
        with keep_freed_memory():  # as trainings do
            ratio = ratio_of(step_of(shape, topology, device, mode), plain, rounds)
        print(mode, shape.architecture.width, topology, f"{ratio:.3f}", flush=True)  # compiling the next takes minutes
        yield topology, ratio


def published_ratio(topology: str) -> dict[str, float]:
    """Return the published ratio of a topology's step as a peer."""
    ratio = paper_overhead(topology)
    return {} if ratio is None else {"printed": ratio}


def step_figures(place: str, shape: Shape, device: torch.device, mode: Mode, rounds: int) -> Iterator[NamedFigure]:
    """Yield the figures of step times."""
    for topology, ratio in step_ratios(shape, device, mode, rounds):
        target = TARGETS.get(topology) if shape is CPU_SHAPES.get(place) and mode == "eager" else None
        yield f"step_{topology}_{place}_{mode}", Figure(ratio, "x resnet", "lower", target, published_ratio(topology))


def memory_figures(place: str, shape: Shape, device: torch.device, mode: Mode) -> Iterator[NamedFigure]:
    """Yield each topology's memory relative to resnet's, which recomputes nothing."""
    plain = memory(shape, "resnet", device, "eager")
    target = MEMORY_TARGET if shape is CPU_SHAPES.get(place) and mode == "recomputed" else None
    for topology in TOPOLOGIES:
        memory_bytes = memory(shape, topology, device, mode)
        yield f"memory_{topology}_{place}_{mode}", Figure(memory_bytes / plain, "x resnet", "lower", target)


def shapes_of(device: torch.device) -> Mapping[str, Shape]:
    """Return the shapes for a device."""
    return GPU_SHAPES if device.type == "cuda" else CPU_SHAPES


def figures(quick: bool) -> dict[str, Figure]:
    """Measure every topology at every shape of this machine."""
    device = available_device()
    torch.set_num_threads(1)
    modes: list[Mode] = ["eager", "recomputed"]
    figures_by_name: dict[str, Figure] = {}
    for place, shape in shapes_of(device).items():
        case = replace(shape, architecture=replace(shape.architecture, depth=2), batch=1) if quick else shape
        for mode in modes:
            figures_by_name |= step_figures(place, case, device, mode, 3 if quick else 20)
            figures_by_name |= memory_figures(place, case, device, mode)
    return figures_by_name


if __name__ == "__main__":
    main("topology_step", figures)
