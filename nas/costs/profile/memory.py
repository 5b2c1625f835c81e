"""The most memory that a piece of work held at once, by what torch's allocators gave out."""

import gc
import json
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.profiler import ProfilerActivity, profile


def peak_of(work: Callable[[], None], device: torch.device) -> int:
    """Bytes that tensors made by the work held at their peak, above what was held before.

    On a CPU from a trace of allocations, because a process's resident set does not grow by what fits into memory that
    it freed earlier and kept.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    with TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    moves = sorted((event["ts"], int(event["args"]["Bytes"])) for event in events if event.get("name") == "[memory]")
    return max(0, max(accumulate(size for _, size in moves), default=0))
