"""The device of this process: which one it is, and what people call it."""

import platform
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch


def available_device() -> torch.device:
    """The device that a training uses in this process: the GPU where CUDA is available."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@cache
def device_name(device: torch.device) -> str:
    """The name of a device's model."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return platform.processor() or platform.machine()
