"""Time of an exact count on the meta device, relative to fvcore on the CPU for the same model and number.

A count includes building the network. The large network is Hugging Face's LLaMA shape of 1B parameters. Memory is the
peak growth of a separate process. The space is `joint` around digits-vit, of 2,016 members, all counted for a budget,
as for a plug-in task without a closed form.
"""

import statistics
import time
import warnings
from collections.abc import Callable

import torch

from benchmarks.form import Figure, child_peaks_mb, main
from nas.budget.bounds import parse_budget
from nas.budget.feasibility import feasible_candidates
from nas.costs.count import FlopCountAnalysis, count_macs, meta_device
from nas.costs.handlers import HANDLERS
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import build_decoder
from search_spaces.models.vit import build_vit
from search_spaces.spaces.catalog import get_space
from tasks.vision.digits import DigitsViT

VIT_BASE = Architecture(depth=12, width=768, heads=12, head_dim=64, hidden=3072)
LLAMA_1B = Architecture(depth=24, width=2048, heads=32, head_dim=64, hidden=5461)


def count_vit_base() -> int:
    """Count the MACs of ViT-B/16 at 224 pixels."""
    with meta_device():
        model, image = build_vit(VIT_BASE, (3, 224, 224), 16, 1000), torch.zeros(1, 3, 224, 224)
    return count_macs(model, (image,))[0]


def count_llama_1b() -> int:
    """Count the MACs of a LLaMA of 1.3B parameters for 256 tokens."""
    with meta_device():
        model = build_decoder(LLAMA_1B, "llama", 32000, 256)
        ids = torch.zeros(1, 256, dtype=torch.long)
    return count_macs(model, (ids,))[0]


def count_vit_base_on_cpu() -> int:
    """Count ViT-B's MACs by running it under fvcore, with handlers for the operators that it lacks."""
    model = build_vit(VIT_BASE, (3, 224, 224), 16, 1000).eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        analysis = FlopCountAnalysis(model, torch.zeros(1, 3, 224, 224)).set_op_handle(**HANDLERS)
        analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
        return int(analysis.total())


class NoClosedForm(DigitsViT):
    """digits-vit without its closed form."""

    def closed_form(self, architecture: Architecture) -> None:
        """Return None."""


def bounded_space() -> int:
    """Count all members of `joint` for a budget that every member meets, and return their number."""
    return len(feasible_candidates(get_space("joint", DigitsViT.base), NoClosedForm(), parse_budget(["params<=10G"])))


def time_ms(function: Callable[[], int]) -> tuple[int, float]:
    """Return the function's result, and its time in milliseconds."""
    began = time.perf_counter()
    count = function()
    return count, 1000 * (time.perf_counter() - began)


def extra_mb() -> float:
    """Return the peak memory growth in megabytes of a process that counts the 1B network."""
    counts = "c.count_vit_base(); peak(); c.count_llama_1b(); peak()"
    before, after = child_peaks_mb(f"import benchmarks.counting as c; {counts}")
    return after - before


def figures(quick: bool) -> dict[str, Figure]:
    """Measure medians of several counts; the ratio is taken pair by pair."""
    count_vit_base(), count_llama_1b()  # the first count of a process also imports
    vit, llama, cpu = [], [], []
    for _ in range(3 if quick else 9):
        ours, milliseconds = time_ms(count_vit_base)
        theirs, cpu_milliseconds = time_ms(count_vit_base_on_cpu)
        if ours != theirs:
            raise RuntimeError(f"the counts differ: {ours} on meta, {theirs} on the CPU")
        vit.append(milliseconds)
        cpu.append(cpu_milliseconds)
        llama.append(time_ms(count_llama_1b)[1])
    spaces = [time_ms(bounded_space) for _ in range(1 if quick else 3)]
    if {members for members, _ in spaces} != {len(get_space("joint", DigitsViT.base))}:
        raise RuntimeError("a budget that all keep left members out")
    ratio = statistics.median(theirs / ours for theirs, ours in zip(cpu, vit, strict=True))
    return {
        "vit_base_ms": Figure(statistics.median(vit), "ms", "lower", target=100),
        "llama_1b_ms": Figure(statistics.median(llama), "ms", "lower", target=1000),
        "plugin_space_s": Figure(statistics.median(time for _, time in spaces) / 1000, "s", "lower", target=5),
        "llama_1b_extra_mb": Figure(extra_mb(), "MB", "lower", target=50),
        "fvcore_cpu_over_ours": Figure(ratio, "ratio", "higher", target=8),
    }


if __name__ == "__main__":
    main("counting", figures)
