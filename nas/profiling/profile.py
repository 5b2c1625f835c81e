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
from search_spaces.errors import UserError
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
    """Measure the network that costs are counted of, at the task's example, with a preset's batch and precision.

    Timed without the profiler, then traced into `kept`.json.gz.

    Raises:
        torch.OutOfMemoryError: There is no memory for a step of that batch.
        UserError: The trace's folder cannot be made.
    """
    recipe = task.presets[preset]
    on_gpu = torch.cuda.is_available() and getattr(recipe, "accelerator", "auto") != "cpu"
    if kept is not None:
        _make(kept.parent)
    with one_thread():
        device = torch.device("cuda" if on_gpu else "cpu")
        found, notes = _measured(task, architecture, preset, batch or usual_batch(recipe), device, kept)
    return found | ({"profile_note": "; ".join(notes)} if notes else {})


def profile_what_fits(
    task: Task, architecture: Architecture, preset: str, batch: int | None, kept: Path | None
) -> Profile:
    """Do as `profile` does, with the batch halved until there is memory for it; the note says so.

    Raises:
        UserError: There is no memory for a single example, or the trace's folder cannot be made.
    """
    asked = size = batch or usual_batch(task.presets[preset])
    while True:
        try:
            found = profile(task, architecture, preset, size, kept)
        except (MemoryError, RuntimeError) as error:  # of the CPU, torch says it in a RuntimeError's text
            if not isinstance(error, MemoryError | torch.OutOfMemoryError) and "memory" not in str(error):
                raise
            if size == 1:
                raise UserError("there is no memory for a step of one example. Take a smaller network.") from error
            size //= 2
            torch.cuda.empty_cache()
            continue
        if size == asked:
            return found
        note = f"batch {size} instead of {asked} for lack of memory"
        return {**found, "profile_note": "; ".join(filter(None, (note, str(found.get("profile_note", "")))))}


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"folder {folder} of traces cannot be made: {error.strerror}. Run nas elsewhere.") from error


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
    found["peak_memory_bytes"] = memory
    notes = []
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
