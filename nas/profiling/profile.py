"""All that is measured of one architecture on the device at hand, as a flat record."""

import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from nas.profiling import trace
from nas.profiling.energy import energy_of
from nas.profiling.memory import peak_of
from nas.profiling.steps import Steps, one_thread, prepare, usual_batch
from nas.profiling.timing import Times, timed
from search_spaces.architecture import Architecture
from tasks.base import Task

Profile = Mapping[str, float | int | str]
"""What was measured, by column; what was not is left out, and `profile_note` says why.

    device              its name
    batch               examples of a training step
    latency_ms          median time of a forward pass of one example, with quartiles latency_ms_q1 and latency_ms_q3
    step_ms             median time of a training step, with quartiles
    examples_per_s      batch over step_ms
    peak_memory_bytes   most memory that building the network and training steps held at once
    energy_j            joules of a training step
    trace               the torch.profiler trace's file; for what is read from it see trace.summary
"""


def profile(task: Task, architecture: Architecture, preset: str, batch: int | None, kept: Path | None) -> Profile:
    """Measure an architecture as a preset trains it. Timed without the profiler, then traced into `kept`.json.gz.

    Where memory runs out, the batch is halved until it does not, and the note says so.

    Raises:
        torch.OutOfMemoryError: There is no memory for a single example.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    asked = size = batch or usual_batch(task.presets[preset])
    with one_thread():
        while True:
            try:
                found, notes = _measured(task, architecture, preset, size, device, kept)
                break
            except torch.OutOfMemoryError:
                if size == 1:
                    raise
                size //= 2
                torch.cuda.empty_cache()
    if size < asked:
        notes.append(f"batch {size} instead of {asked} for lack of memory")
    return found | ({"profile_note": "; ".join(notes)} if notes else {})


def _measured(
    task: Task, architecture: Architecture, preset: str, batch: int, device: torch.device, kept: Path | None
) -> tuple[dict[str, Any], list[str]]:
    steps: list[Steps] = []

    def build_and_train() -> None:
        steps.append(prepare(task, architecture, preset, batch, device))
        for _ in range(2):
            steps[0].train()

    memory = peak_of(build_and_train, device)
    train, infer = steps[0].train, steps[0].infer
    step, latency = timed(train, device), timed(infer, device)
    energy, why_not = energy_of(train, device)
    found: dict[str, Any] = {"device": device_name(device), "batch": batch}
    found |= _quartiles("latency_ms", latency) | _quartiles("step_ms", step)
    found["examples_per_s"] = 1e3 * batch / step.median
    notes = []
    if memory is None:
        notes.append("this system does not tell a process's peak memory")
    else:
        found["peak_memory_bytes"] = memory
    if energy is None:
        notes.append(why_not)
    else:
        found["energy_j"] = energy
    if kept is not None:
        found |= _traced(train, kept.with_name(f"{kept.name}.json.gz"), device, notes)
    return found, notes


def _traced(train: Callable[[], None], path: Path, device: torch.device, notes: list[str]) -> dict[str, Any]:
    trace.record(train, path, device)
    try:
        return {"trace": str(path), **trace.summary(path)}
    except ValueError as error:
        notes.append(str(error))
        return {"trace": str(path)}


def _quartiles(name: str, times: Times) -> dict[str, float]:
    return {name: times.median, f"{name}_q1": times.q1, f"{name}_q3": times.q3}


def trace_of(task: str, architecture: Architecture) -> Path:
    """Where the trace of an architecture is kept that was profiled by itself, without its ending."""
    return Path("nas-runs", "traces", f"{task}-{architecture.key}")


def device_name(device: torch.device) -> str:
    """What people call the device."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name")) + ", 1 thread"
    return f"{platform.processor() or platform.machine()}, 1 thread"
