"""The profile of an architecture on the device of this machine, as a flat record."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from nas.costs.profile import trace
from nas.costs.profile.energy import energy_of
from nas.costs.profile.memory import peak_of
from nas.costs.profile.steps import (
    DEFAULT_BATCH,
    Call,
    batch_of,
    generic_step,
    has_training_step,
    inference,
    micro_batch_of,
    optimizer_of,
    with_batch,
)
from nas.costs.profile.timing import MIN_CALLS, Times, time_call
from nas.environment.device import device_name
from nas.environment.paths import RUNS
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError, reason_of
from search_spaces.support.progress import status_if_slow
from search_spaces.support.threads import cpu_threads
from tasks.base import Task
from tasks.run import Run
from tasks.training.allocator import keep_freed_memory

Profile = Mapping[str, float | int | str]
"""Column -> measurement; missing ones are left out, and `profile_note` says why.

    device              its name
    threads             CPU threads of an operator
    batch               examples of a training step: a whole optimizer step, over all its passes
    latency_ms          median time of a forward pass of one example, with quartiles latency_ms_q1 and latency_ms_q3
    step_ms             median time of a training step, with quartiles
    examples_per_s      batch over step_ms
    peak_memory_bytes   peak memory of building the network and of training steps
    energy_j            joules of a training step
    trace               file of the torch.profiler trace; trace.summary describes the columns read from it
"""


def profile(
    task: Task, architecture: Architecture, recipe: Any, batch: int | None, trace_path: Path | None, threads: int = 1
) -> Profile:
    """Measure the task's training step with a recipe, and a forward pass of the network whose costs are counted.

    `batch` is the number of examples of a step; None takes the recipe's. A task without a training step is measured
    with a generic one, and the note says so. After the timing, a trace is written to `trace_path`.json.gz.

    Raises:
        torch.OutOfMemoryError: There is no memory for a step of that batch.
        UserError: The trace's folder cannot be made, the task's data is not available, or threads are below 1.
    """
    step_recipe = recipe if batch is None else with_batch(recipe, batch)
    return _profile(task, architecture, step_recipe, batch, trace_path, threads)


def profile_largest_batch(
    task: Task, architecture: Architecture, recipe: Any, batch: int | None, trace_path: Path | None, threads: int = 1
) -> Profile:
    """Profile as `profile` does, but halve the batch until it fits into memory, and say so in the note.

    Passes shrink with the batch. Shows a status line on standard error after two seconds.

    Raises:
        UserError: There is no memory for a single example, or as `profile`.
    """
    step_recipe, size = (recipe, batch) if batch is None else (with_batch(recipe, batch), batch)
    with status_if_slow(f"profiling {task.name}, {architecture} ..."):
        while True:
            try:
                record = _profile(task, architecture, step_recipe, size, trace_path, threads)
                break
            except (MemoryError, RuntimeError) as error:  # on the CPU, torch raises a RuntimeError about memory
                if not isinstance(error, MemoryError | torch.OutOfMemoryError) and "memory" not in str(error):
                    raise
                size = size or batch_of(step_recipe) or DEFAULT_BATCH
                if size == 1 or (has_training_step(task) and batch_of(step_recipe) is None):
                    least = "one example" if size == 1 else f"{task.name!r}, whose batch is fixed,"
                    message = f"a training step of {least} does not fit into memory. Use a smaller network."
                    raise UserError("too-large", message, task=task.name, batch=1 if size == 1 else None) from error
                size //= 2
                step_recipe = with_batch(step_recipe, size, max(1, micro_batch_of(step_recipe) // 2))
                torch.cuda.empty_cache()
    full_batch = batch or batch_of(recipe) or DEFAULT_BATCH
    if record.get("batch", full_batch) == full_batch:
        return record
    note = f"batch {record['batch']} instead of {full_batch}, which does not fit into memory"
    return {**record, "profile_note": "; ".join(filter(None, (note, str(record.get("profile_note", "")))))}


def _profile(
    task: Task, architecture: Architecture, recipe: Any, batch: int | None, trace_path: Path | None, threads: int
) -> Profile:
    """Measure with a recipe that already has its batch; `batch` is for recipes without one."""
    if threads < 1:
        message = f"threads must be at least 1, got {threads}."
        raise UserError("out-of-range", message, option="--threads", value=threads, least=1)
    if trace_path is not None:
        _make(trace_path.parent)
    on_gpu = torch.cuda.is_available() and getattr(recipe, "accelerator", "auto") != "cpu"
    device = torch.device("cuda" if on_gpu else "cpu")
    run = Run(architecture=architecture, recipe=recipe, seed=0, device=device, threads=threads)
    with keep_freed_memory(), cpu_threads(threads):
        record, notes = _measure(task, run, batch, trace_path)
    return record | ({"profile_note": "; ".join(notes)} if notes else {})


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"trace folder {folder} cannot be created: {error.strerror}. Run nas in another folder."
        raise UserError("unwritable", message, path=str(folder)) from error


def _measure(task: Task, run: Run, batch: int | None, trace_path: Path | None) -> tuple[dict[str, Any], list[str]]:
    device, notes = run.device, list[str]()
    if getattr(run.recipe, "compile", False):
        torch.compiler.reset()  # torch stops compiling after too many networks
    train, memory, examples = _step(task, run, batch, notes)
    step = time_call(train, device)
    latency = time_call(inference(task, run.architecture, run.recipe, device), device)
    energy, why_not = energy_of(train, device)
    record: dict[str, Any] = {"device": device_name(device), "threads": run.threads}
    record |= {} if examples is None else {"batch": examples, "examples_per_s": 1e3 * examples / step.median}
    record |= _quartiles("latency_ms", latency) | _quartiles("step_ms", step) | {"peak_memory_bytes": memory}
    if step.calls < MIN_CALLS:
        notes.append(f"quartiles over {step.calls} steps")
    if energy is None:
        notes.append(why_not)
    else:
        record["energy_j"] = energy
    if trace_path is not None:
        record |= _record_trace(train, trace_path.with_name(f"{trace_path.name}.json.gz"), device, notes)
    return record, notes


def _step(task: Task, run: Run, batch: int | None, notes: list[str]) -> tuple[Call, int, int | None]:
    """Return the training step to measure, the peak memory of building and taking it, and its examples if known."""
    if has_training_step(task):
        task.prepare()  # otherwise the first read of the data would be in the peak
        task.inputs(run.recipe)
        if batch is not None and batch_of(run.recipe) is None:
            message = f"the batch of task {task.name!r} cannot be set. Leave --batch out."
            raise UserError("unsupported", message, option="--batch", value=batch, task=task.name)
        try:
            return *_with_peak(lambda: task.training_step(run), run.device), batch_of(run.recipe)
        except NotImplementedError:
            pass
    optimizer = optimizer_of(run.recipe)
    notes.append(f"task {task.name!r} has no training step: measured a step of {optimizer} on a placeholder loss")
    size = batch or batch_of(run.recipe) or DEFAULT_BATCH
    make = partial(generic_step, task, run.architecture, run.recipe, size, run.device)
    return *_with_peak(make, run.device), size


def _with_peak(make: Callable[[], Call], device: torch.device) -> tuple[Call, int]:
    """Return a step, and the peak memory of making it and taking it twice."""
    steps: list[Call] = []

    def build_and_train() -> None:
        steps.append(make())
        for _ in range(2):
            steps[0]()

    memory = peak_of(build_and_train, device)
    return steps[0], memory


def _record_trace(train: Callable[[], None], path: Path, device: torch.device, notes: list[str]) -> dict[str, Any]:
    try:
        trace.record(train, path, device)
    except (OSError, RuntimeError) as error:  # a full disk loses the trace, not the measurements
        path.unlink(missing_ok=True)
        notes.append(f"no trace was saved: {reason_of(error)}")
        return {}
    try:
        return {"trace": str(path), **trace.summary(path)}
    except UserError as error:
        notes.append(str(error))
        return {"trace": str(path)}


def _quartiles(name: str, times: Times) -> dict[str, float]:
    return {name: times.median, f"{name}_q1": times.q1, f"{name}_q3": times.q3}


def trace_of(task: str, architecture: Architecture) -> Path:
    """Return the path of the trace of a single profiled architecture, without its suffix."""
    return Path(RUNS, "traces", f"{task}-{architecture.key}")
