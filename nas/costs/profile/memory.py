"""Peak memory of a function, by torch's allocators."""

import gc
import json
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.profiler import ProfilerActivity, profile


def peak_of(work: Callable[[], None], device: torch.device) -> int:
    """Return the peak number of bytes in tensors that the work allocated, above what was allocated before.

    On a CPU it is read from a trace of allocations: the resident set does not show the reuse of freed memory.
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
