"""Where the time of training steps goes: a torch.profiler trace, read by torch-tb-profiler's parser.

That package is no longer maintained, and its parser is no public interface: all that is used of it is used here.
"""

import logging
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from nas.costs.profile.kernels import on_tensor_cores
from search_spaces.support.errors import UserError

STEPS = 3
"""Number of steps in a trace, after one to warm up the profiler."""

SHARES = {
    "kernel": "Kernel",
    "memcpy": "Memcpy",
    "memset": "Memset",
    "communication": "Communication",
    "runtime": "Runtime",
    "data_loading": "DataLoader",
    "cpu": "CpuOp",
    "other": "Other",
}
"""Part of a step's time, and torch-tb-profiler's name of it."""


def record(call: Callable[[], None], path: Path, device: torch.device) -> None:
    """Trace calls into a compressed Chrome trace, PATH.json.gz; TensorBoard and Perfetto open it."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    path.parent.mkdir(parents=True, exist_ok=True)
    plan = schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with profile(
        activities=activities, schedule=plan, on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path))
    ) as profiler:
        for _ in range(STEPS + 1):
            call()
            profiler.step()


def summary(path: Path) -> Mapping[str, float]:
    """What torch-tb-profiler reads from a trace: shares of a step's time, and how well a GPU was used.

    `time_<part>` are shares of a step. On a GPU also `gpu_utilisation` (share of the time in which a kernel ran),
    `sm_efficiency` (its estimate: blocks over multiprocessors, at most 1, weighted by time; no hardware counter),
    `occupancy` (share of threads that can be resident, weighted by time) and `tensor_core_share` (of kernel time).

    Raises:
        UserError: The trace cannot be parsed.
    """
    from torch_tb_profiler.profiler.event_parser import ProfileRole

    data = _parse(path)
    costs = data.avg_costs.costs
    total = costs[ProfileRole.Total]
    if not 0 < total < math.inf:
        raise UserError("bad-file", f"{path} cannot be parsed as a trace: it holds no steps", path=str(path), steps=0)
    shares = {f"time_{part}": costs[ProfileRole[role]] / total for part, role in SHARES.items()}
    return shares | _gpu_metrics(data)


def operators(path: Path, most: int) -> list[dict[str, Any]]:
    """The operators that took longest by themselves, on device or host, over all steps: name, calls, milliseconds.

    Raises:
        UserError: The trace cannot be parsed.
    """
    records = [
        {"operator": operator.name, "calls": operator.calls, "device_ms": operator.self_device_duration / 1e3,
         "host_ms": operator.self_host_duration / 1e3}
        for operator in _parse(path).op_list_groupby_name
    ]  # fmt: skip
    return sorted(records, key=lambda record: (-record["device_ms"], -record["host_ms"]))[:most]


def _gpu_metrics(data: Any) -> dict[str, float]:
    if not data.has_kernel:
        return {}
    metrics, kernels = data.gpu_metrics_parser, data.kernel_stat
    (gpu, *_) = data.used_devices or [0]
    tensor_core_time = sum(row["sum"] for name, row in kernels.iterrows() if on_tensor_cores(name))
    shares = {
        "gpu_utilisation": metrics.gpu_utilization[gpu],
        "sm_efficiency": metrics.avg_approximated_sm_efficiency_per_device[gpu],
        "occupancy": metrics.avg_occupancy_per_device[gpu],
        "tensor_core_share": tensor_core_time / kernels["sum"].sum(),
    }
    # Occupancy is a percentage there, the others are shares.
    shares["occupancy"] = None if shares["occupancy"] is None else shares["occupancy"] / 100
    return {name: float(value) for name, value in shares.items() if value is not None}


def _parse(path: Path) -> Any:
    logging.getLogger("torch_tb_profiler").setLevel(logging.ERROR)
    from torch_tb_profiler.profiler.data import RunProfileData

    try:
        with TemporaryDirectory() as scratch, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas has moved on since
            return RunProfileData.parse("worker", "span", str(path), scratch)
    except Exception as error:  # the parser raises whatever it stumbles over
        message = f"{path} cannot be parsed as a trace: {type(error).__name__}: {error}"
        raise UserError("bad-file", message, path=str(path), cause=type(error).__name__) from error
