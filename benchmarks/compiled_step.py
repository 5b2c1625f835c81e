"""Training-step time of every topology relative to resnet's, both compiled, at the shapes of `topology_step`.

Topologies are measured in sequence in one process, and most of the time is compilation. With --quick, or on a CPU
without a C++ compiler, nothing is measured. Peers are published ratios, and "floor": the ratio of steps that are
limited by memory traffic (4.3 TB/s, 780 TFLOP/s, all elementwise work fused), for the GPU shapes only.
"""

import shutil

import torch

from benchmarks.form import Figure, main
from benchmarks.topology_step import TOPOLOGIES, published_ratio, shapes_of, step_ratios
from nas.environment.device import available_device

TARGETS = {
    ("grn-v3(k=2)", "d512"): 1.15,
    ("grn-v3(k=2)", "d1024"): 1.15,
    ("dca(k=2)", "d512"): 1.25,
    ("dca(k=2)", "d1024"): 1.15,
    ("dca", "d512"): 1.6,
    ("dca", "d1024"): 1.6,
    ("ancre", "d512"): 1.15,
    ("ancre", "d1024"): 1.15,
    ("rmt", "d512"): 1.10,
    ("rmt", "d1024"): 1.0,
}
"""For GPUs."""

FLOORS = {
    ("grn-v1(k=2)", "d512"): 1.066,
    ("grn-v1(k=2)", "d1024"): 1.037,
    ("grn-v3(k=2)", "d512"): 1.086,
    ("grn-v3(k=2)", "d1024"): 1.048,
    ("dca(k=2)", "d512"): 1.138,
    ("dca(k=2)", "d1024"): 1.078,
    ("dca", "d512"): 1.35,
    ("dca", "d1024"): 1.20,
    ("ancre", "d512"): 1.17,
    ("ancre", "d1024"): 1.10,
    ("denseformer", "d512"): 1.17,
    ("denseformer", "d1024"): 1.10,
    ("rmt", "d512"): 1.035,
    ("rmt", "d1024"): 0.905,
}


def figures(quick: bool) -> dict[str, Figure]:
    """Measure every topology at every shape of this machine; without compilation all values are None."""
    device = available_device()
    torch.set_num_threads(1)
    compiles = not quick and (device.type == "cuda" or shutil.which("c++"))
    if compiles:
        torch._dynamo.config.recompile_limit = 10 * len(TOPOLOGIES)  # beyond it, torch runs the rest uncompiled
        torch._dynamo.config.fail_on_recompile_limit_hit = True
    else:
        print("nothing is compiled", "with --quick: leave it out" if quick else "here: there is no C++ compiler, c++")
    figures_by_name = {}
    for place, shape in shapes_of(device).items():
        ratios = (
            step_ratios(shape, device, "compiled", rounds=20)
            if compiles
            else ((topology, None) for topology in TOPOLOGIES)
        )
        for topology, ratio in ratios:
            at = topology, place
            peers = published_ratio(topology) | ({"floor": FLOORS[at]} if at in FLOORS else {})
            figures_by_name[f"step_{topology}_{place}_compiled"] = Figure(
                ratio, "x resnet", "lower", TARGETS.get(at), peers
            )
    return figures_by_name


if __name__ == "__main__":
    main("compiled_step", figures)
