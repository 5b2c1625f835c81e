"""The most memory that a piece of work held at once."""

import gc
from collections.abc import Callable
from pathlib import Path

import psutil
import torch

_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
_FORGET_PEAK = "5"  # see proc(5)


def peak_of(work: Callable[[], None], device: torch.device) -> int | None:
    """Bytes that the work held at its peak, above what was held before; None where the system does not say.

    On a GPU, what torch's allocator gave out; on a CPU, the growth of the process's resident set, which only Linux
    tells, and which misses what fits into memory that the process had freed and kept.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    try:
        _REFS.write_text(_FORGET_PEAK)
    except OSError:
        work()
        return None
    resident = int(psutil.Process().memory_info().rss)
    work()
    return max(0, _resident_peak() - resident)


def _resident_peak() -> int:
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
