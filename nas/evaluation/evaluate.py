"""The evaluation of one job: one Row, also after a failure.

The Row is determined by the job and the data, except for its speeds, profile and provenance. It is the same in this
process, in a local worker or on another machine.
"""

import math
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from nas.budget.bounds import Budget
from nas.budget.objectives import COUNT_COSTS, MEASURES
from nas.costs import count
from nas.costs.profile.profile import profile
from nas.environment.debugging import show_traceback
from nas.environment.device import available_device
from nas.evaluation.failures import clean_up, reason_of_failure
from nas.evaluation.heartbeat import Heartbeat
from nas.evaluation.saved_networks import copy_network, read_if_saved, save_network
from nas.request.job import EvaluationJob, ResolvedJob, identity, is_first_process, needs_network, resolve_job, task_of
from nas.request.resolve import check_measurable_network
from nas.store.locks import folder_lock
from nas.store.retry import retry_on_disconnect
from nas.store.store import Store
from results.records.row import BadRow, CurvePoint, Row
from search_spaces.architecture.checkpoint import read_weights
from search_spaces.support.errors import Notice, UserError, cause_fields, reason_of
from search_spaces.support.files import read_checked, write_checked
from search_spaces.support.rank import world_size
from search_spaces.support.threads import cpu_threads
from tasks.base import Diverged, FitResult, plain_numbers
from tasks.run import CONTINUE, STOP, Decision, Run

ROW_FILE = "row.json"


def evaluate(job: EvaluationJob) -> Row:
    """Build, count, train and measure, under the lock of the job's folder (`job_lock`). A failure returns a Row, too.

    A job with an `earlier_row`, or with the Row of an earlier process in its folder, is not trained again: measures and
    pictures use the saved network. Without a saved network it is trained again.

    Raises:
        UserError: The job is impossible for any architecture (missing data, unknown task), or the task's file or data
            changed since the job was made.
    """
    began = time.perf_counter()
    task_of(job.task, job.data).prepare()
    evaluation = resolve_job(job)
    row: Row = evaluation.row
    _check_unchanged(job, row)
    network: nn.Module | None = None
    with cpu_threads(job.threads):
        try:
            row = replace(row, costs=count.count(evaluation.task, job.architecture))
            row = _check_limits(job.limits.count_budget, row, asdict(row.costs))
            if row.status != "over-budget" and (job.profiled or job.limits.profile_budget.bounds or job.trace):
                row = _profile(evaluation, row)
            check_measurable_network(evaluation.task, job.architecture, job.measures)  # before hours of training
            if row.status != "over-budget":
                earlier, network = _load_earlier(evaluation)
                if earlier is None:
                    row, network = _train(evaluation, row)
                    row = _write(job, row, began)  # a failure of a measure must not lose the training
                else:
                    row = replace(earlier, space=job.space, preset=job.preset, profile=row.profile or earlier.profile)
                if network is not None and row.status == "complete":
                    row = _measure_and_render(evaluation, row, network)
        except (Exception, SystemExit) as error:  # a trial may raise anything; the search continues
            show_traceback(error)
            row = replace(row, error=reason_of_failure(error))
    del network
    clean_up(row)  # nothing refers to the network any more
    return _write(job, row, began)


def _check_unchanged(job: EvaluationJob, row: Row) -> None:
    """Raise UserError if this process would train something else than the process that made the job."""
    if job.identity not in ("", row.identity()):
        message = (
            f"task {job.task!r} must have the same code and data in each process, got others than at the start. If a "
            "file or module was edited, or differs between machines, run it again with one version. If load() returns "
            "other data each time, seed its random numbers."
        )
        raise UserError("mismatch", message, option="task", value=job.task, expected=job.identity)


@contextmanager
def job_lock(job: EvaluationJob) -> Iterator[EvaluationJob]:
    """Lock a job's folder for its evaluation, and yield the job, with the Row that another process wrote meanwhile.

    Raises:
        UserError: Another process has the lock, and this is a distributed training, which must not wait.
    """
    with folder_lock(job.folder if is_first_process() else None, waits=world_size() == 1) as had_to_wait:
        yield replace(job, earlier_row=_find_concurrent_row(job)) if had_to_wait else job


def find_row(job: EvaluationJob, folder: str | Path | None) -> Row | None:
    """Return the complete Row that an evaluation of the same job left in a folder, or None."""
    if folder is None:
        return None
    content = read_checked(Path(folder, ROW_FILE))
    with suppress(UnicodeDecodeError, BadRow):
        row = None if content is None else Row.from_json(content.decode())
        if row and row.identity() == (job.identity or identity(job)) and row.status == "complete":
            return row
    return None


def _load_earlier(evaluation: ResolvedJob) -> tuple[Row | None, nn.Module | None]:
    """Return the Row of an earlier identical evaluation, and its network if the job needs it."""
    job = evaluation.job
    earlier_row = job.earlier_row or find_row(job, job.folder)
    if earlier_row is None or not needs_network(job, earlier_row):
        return earlier_row, None
    network = read_if_saved(job.network_folder, evaluation.task)
    if network is None:
        message = "the trained network was not saved: training it again."
        warnings.warn(Notice("missing-file", message, path=job.network_folder), stacklevel=2)
        return None, None
    if job.save is not None:
        with _warn_on_failure(f"the trained network could not be saved in {job.save}", "--save"):
            copy_network(Path(str(job.network_folder)), Path(job.save))
    return earlier_row, network


def _find_concurrent_row(job: EvaluationJob) -> Row | None:
    """Return the Row that another process wrote meanwhile: from the folder, where it is first, or the store."""
    row = find_row(job, job.folder)
    if row is not None or job.store is None:
        return row or job.earlier_row
    entry = retry_on_disconnect(Store(job.store).find_complete)(job.identity)
    return entry[1] if entry else job.earlier_row


_PRUNED_NOTICE = "the training was stopped early: its network is not saved, rendered or measured."


def _train(evaluation: ResolvedJob, row: Row) -> tuple[Row, nn.Module | None]:
    """Train, and save the network in the job's folders."""
    job, task = evaluation.job, evaluation.task
    curve: list[CurvePoint] = []
    stop_steps: list[int] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append({"step": int(step), "metrics": plain_numbers(metrics, "reported metrics")})
        _check_names(evaluation, metrics, "a report")
        if job.max_steps is None or step < job.max_steps:
            return CONTINUE
        stop_steps.append(step)
        return STOP

    heartbeat, began = Heartbeat(job.folder if is_first_process() else None), time.perf_counter()
    run = Run(
        architecture=job.architecture,
        recipe=evaluation.recipe,
        seed=job.seed,
        device=available_device(),
        threads=job.threads,
        folder=Path(job.folder) if job.folder else None,
        start=_start(job),
        report=report,
        on_step=heartbeat,
    )
    try:
        fit = task.fit(run)
        _check(evaluation, fit)
    except (Exception, SystemExit) as error:
        show_traceback(error)
        return replace(row, curve=_finite_points(curve), error=reason_of_failure(error)), None
    finally:
        heartbeat.forget()
    is_pruned = stop_steps[:1] == [fit.steps]
    row = replace(
        row,
        status="pruned" if is_pruned else "complete",
        error=None,
        steps=fit.steps,
        metrics=fit.metrics,
        test=fit.test,
        extra_metrics=_finite_numbers(fit.extra_metrics),
        speeds=_finite_numbers(fit.speeds),
        curve=_finite_points(curve),
        provenance={**row.provenance, "fit_s": time.perf_counter() - began},
    )
    if not is_pruned:
        save_network(task, job, fit)
    elif job.save or job.render or job.measures:
        warnings.warn(Notice("skipped", _PRUNED_NOTICE), stacklevel=2)
    return row, fit.network


def _start(job: EvaluationJob) -> Mapping[str, Tensor] | None:
    return None if job.start_folder is None else read_weights(Path(job.start_folder))


def _measure_and_render(evaluation: ResolvedJob, row: Row, network: nn.Module) -> Row:
    """Return the Row with measures of the trained network. A failure here only warns: the training is not lost."""
    job, task = evaluation.job, evaluation.task
    if "conditioning" in job.measures and not set(MEASURES["conditioning"]) <= set(row.extra_metrics):
        from nas.costs.conditioning import conditioning_metrics

        with _warn_on_failure("conditioning could not be measured", "--measure"):
            row = replace(
                row,
                extra_metrics={**row.extra_metrics, **conditioning_metrics(network, task.inputs(evaluation.recipe))},
            )
    if job.render is not None and is_first_process():
        with _warn_on_failure(f"{job.render} could not be rendered", "--render"):
            task.render(network, Path(job.render))
    return row


@contextmanager
def _warn_on_failure(problem: str, option: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        show_traceback(error)
        fields = {"option": option, **cause_fields(error)}
        warnings.warn(Notice("failed", f"{problem}: {reason_of(error)}", **fields), stacklevel=2)


def _profile(evaluation: ResolvedJob, row: Row) -> Row:
    """Return the Row with its profile, over budget if the profile exceeds the job's limits."""
    job, limits = evaluation.job, evaluation.job.limits.profile_budget
    trace = Path(job.trace) if job.trace else None
    record = profile(evaluation.task, job.architecture, evaluation.recipe, None, trace, job.threads)
    for quantity in limits.bounds:
        if quantity not in record:
            raise RuntimeError(f"{quantity} has a bound but was not measured: {record.get('profile_note')}")
    return _check_limits(limits, replace(row, profile=record), record)


def _check_limits(limits: Budget, row: Row, amounts: Mapping[str, Any]) -> Row:
    """Return the Row, over budget if the amounts are outside the limits."""
    costs = {quantity: amounts[quantity] or 0 for quantity in limits.bounds}  # None: not in the record
    if limits.allows(costs):
        return row
    text = ", ".join(f"{n}={costs[n]}" if n in COUNT_COSTS else f"{n}={costs[n]:.4g}" for n in costs)
    return replace(row, status="over-budget", error=f"{text} is not within {limits}")


def _check(evaluation: ResolvedJob, fit: FitResult) -> None:
    """Raise if `fit` did not return a FitResult, or a metric is missing or not finite."""
    task = evaluation.task
    if not isinstance(fit, FitResult):
        raise TypeError(f"fit of task {task.name!r} must return a FitResult, got {type(fit).__name__}")
    _check_names(evaluation, fit.metrics, "fit")
    for name, value in {**fit.metrics, **{f"test_{name}": value for name, value in fit.test.items()}}.items():
        if not math.isfinite(value):
            raise Diverged(f"{name} is {float(value)}")


def _check_names(evaluation: ResolvedJob, metrics: Mapping[str, float], source: str) -> None:
    """Raise if a metric of the task is missing: at the first report, if there are some, and not after hours."""
    for metric in evaluation.task.metrics_for(evaluation.recipe):
        if metric.name not in metrics:
            got = ", ".join(metrics) or "none"
            raise RuntimeError(
                f"{source} of task {evaluation.task.name!r} must have all of its metrics, got {got} without "
                f"{metric.name!r}. Add it in fit(), or take it out of the task's metrics."
            )


def _finite_numbers(values: Mapping[str, float]) -> dict[str, float]:
    """Return the finite values: extra metrics must not make a Row fail."""
    return {name: number for name, number in values.items() if math.isfinite(number)}


def _finite_points(curve: list[CurvePoint]) -> tuple[CurvePoint, ...]:
    return tuple(point for point in curve if all(map(math.isfinite, point["metrics"].values())))


def _write(job: EvaluationJob, row: Row, began: float) -> Row:
    """Return the Row with its time. Write a complete one into the job's folder, until the store has it."""
    if "wall_s" not in row.provenance:  # an earlier Row has its training's time
        row = replace(row, provenance={**row.provenance, "wall_s": time.perf_counter() - began})
    if job.folder is not None and row.status == "complete" and is_first_process():
        path = Path(job.folder, ROW_FILE)
        try:
            write_checked(path, row.to_json().encode())
        except OSError as error:
            message = f"{path} could not be saved: {error.strerror}."
            warnings.warn(Notice("unwritable", message, path=str(path)), stacklevel=2)
    return row
