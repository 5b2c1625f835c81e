"""Energy that a GPU used, by NVML's counter."""

import time
from collections.abc import Callable

import torch

from nas.costs.profile.timing import synchronize
from nas.environment.nvml import handle_of

WINDOW_S = 5.0
"""Minimal seconds of a measurement: NVML's counter is updated only every 20 to 100 ms."""


def energy_of(call: Callable[[], None], device: torch.device) -> tuple[float | None, str]:
    """Return joules of one call, averaged over at least WINDOW_S; or None, and the reason why not."""
    if device.type != "cuda":
        return None, "energy is measured on NVIDIA GPUs only"
    try:
        import pynvml
    except ImportError:
        return None, 'energy needs NVML: pip install ".[gpu]"'
    try:
        handle, read = handle_of(device), pynvml.nvmlDeviceGetTotalEnergyConsumption
        synchronize(device)
        before, start, calls = read(handle), time.perf_counter(), 0
        while not calls or time.perf_counter() - start < WINDOW_S:
            call()
            synchronize(device)
            calls += 1
        return (read(handle) - before) / 1e3 / calls, ""
    except pynvml.NVMLError as error:
        return None, f"NVML failed: {error}"
