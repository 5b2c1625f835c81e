"""A torch.profiler trace of training steps, read with the parser of torch-tb-profiler.

That package is no longer maintained, and its parser is not public. Only this module uses it.
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
"""Number of steps in a trace, after one that warms up the profiler."""

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
"""Part of a step's time -> its name in torch-tb-profiler."""


def record(call: Callable[[], None], path: Path, device: torch.device) -> None:
    """Trace calls into a compressed Chrome trace, PATH.json.gz, for TensorBoard and Perfetto."""
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
    """Return the metrics of torch-tb-profiler for a trace: shares of a step's time, and the use of a GPU.

    `time_<part>` are fractions of a step. A GPU adds `gpu_utilisation` (fraction of the time in which a kernel ran),
    `sm_efficiency` (an estimate: blocks over multiprocessors, at most 1, weighted by time; no hardware counter),
    `occupancy` (fraction of possible resident threads, weighted by time) and `tensor_core_share` (of kernel time).

    Raises:
        UserError: The trace cannot be parsed.
    """
    from torch_tb_profiler.profiler.event_parser import ProfileRole

    data = _parse(path)
    costs = data.avg_costs.costs
    total = costs[ProfileRole.Total]
    if not 0 < total < math.inf:
        raise UserError("bad-file", f"{path} cannot be parsed as a trace: it has no steps", path=str(path), steps=0)
    shares = {f"time_{part}": costs[ProfileRole[role]] / total for part, role in SHARES.items()}
    return shares | _gpu_metrics(data)


def operators(path: Path, most: int) -> list[dict[str, Any]]:
    """Return the operators with the largest own time, on device or host, over all steps: name, calls, milliseconds.

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
    # torch-tb-profiler gives occupancy as a percentage, the others as fractions.
    shares["occupancy"] = None if shares["occupancy"] is None else shares["occupancy"] / 100
    return {name: float(value) for name, value in shares.items() if value is not None}


def _parse(path: Path) -> Any:
    logging.getLogger("torch_tb_profiler").setLevel(logging.ERROR)
    from torch_tb_profiler.profiler.data import RunProfileData

    try:
        with TemporaryDirectory() as scratch, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas has deprecated calls of this package
            return RunProfileData.parse("worker", "span", str(path), scratch)
    except Exception as error:  # the parser raises exceptions of any class
        message = f"{path} cannot be parsed as a trace: {type(error).__name__}: {error}"
        raise UserError("bad-file", message, path=str(path), cause=type(error).__name__) from error
