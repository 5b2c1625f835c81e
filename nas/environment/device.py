"""The device of this process and its name."""

import platform
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch


def available_device() -> torch.device:
    """Return the device that this process trains on: the GPU if CUDA is available, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@cache
def device_name(device: torch.device) -> str:
    """Return the model name of a device."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return platform.processor() or platform.machine()
