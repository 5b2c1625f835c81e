"""One architecture on one task -> one Row, whatever happens.

The Row follows from the job and the data: it is the same in this process, in a local worker or elsewhere, but for
its speeds, its profile and its provenance.
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
from nas.evaluation.job import Evaluation, EvaluationJob, first_process, identity, lacks_network, resolve, task_of
from nas.evaluation.saved_networks import copy_network, keep_network, load_network
from nas.store.locks import held
from nas.store.retry import retry_on_disconnect
from nas.store.store import Store
from results.records.row import BadRow, CurvePoint, Row
from search_spaces.architecture.checkpoint import read_weights
from search_spaces.support.errors import Notice, fields_of, reason_of
from search_spaces.support.files import read_checked, write_checked
from search_spaces.support.rank import processes
from search_spaces.support.threads import cpu_threads
from tasks.base import Diverged, FitResult, plain_numbers
from tasks.run import CONTINUE, STOP, Decision, Run

KEPT = "row.json"


def evaluate(job: EvaluationJob) -> Row:
    """Build, count, train and measure, where the job's folder is held (`held_for`). A failure is a Row with its reason.

    What is known of the job, by its `known` or by the Row in its folder that an earlier process left there, is not
    done again: measures and pictures are then of the network that was kept. Without one it is trained again.

    Raises:
        UserError: What was asked for cannot be done for any architecture (missing data, unknown task).
    """
    began = time.perf_counter()
    task_of(job.task, job.data).prepare()
    evaluation = resolve(job)
    row: Row = evaluation.row
    network: nn.Module | None = None
    with cpu_threads(job.threads):
        try:
            row = replace(row, costs=count.count(evaluation.task, job.architecture))
            row = _within(job.limits.count_budget, row, asdict(row.costs))
            if row.status != "over-budget" and (job.profiled or job.limits.profile_budget.bounds or job.trace):
                row = _profile(evaluation, row)
            _refuse_measures(evaluation)  # before hours of training, not after
            if row.status != "over-budget":
                known, network = _known(evaluation)
                if known is None:
                    row, network = _train(evaluation, row)
                    row = _write(job, row, began)  # what is measured now must not cost a finished training
                else:
                    row = replace(known, space=job.space, preset=job.preset, profile=row.profile or known.profile)
                if network is not None and row.status == "complete":
                    row = _observe(evaluation, row, network)
        except (Exception, SystemExit) as error:  # a trial may fail in any way; the search goes on
            show_traceback(error)
            row = replace(row, error=reason_of_failure(error))
    del network
    clean_up(row)  # now that nothing holds the network
    return _write(job, row, began)


@contextmanager
def held_for(job: EvaluationJob) -> Iterator[EvaluationJob]:
    """Hold the folder of a job while it is evaluated; gives the job, with what another process found of it meanwhile.

    Raises:
        UserError: Another process holds it, and those that train together must not be parted by waiting.
    """
    with held(job.folder if first_process() else None, waits=processes() == 1) as waited:
        yield replace(job, known=_found_by_another(job)) if waited else job


def find_row(job: EvaluationJob, folder: str | Path | None) -> Row | None:
    """The Row that an evaluation of the same job left in a folder, or None; what cannot be read is none."""
    if folder is None:
        return None
    content = read_checked(Path(folder, KEPT))
    with suppress(UnicodeDecodeError, BadRow):
        row = None if content is None else Row.from_json(content.decode())
        if row and row.identity() == (job.identity or identity(job)) and row.status == "complete":
            return row
    return None


def _known(evaluation: Evaluation) -> tuple[Row | None, nn.Module | None]:
    """The Row of the same evaluation, where it was done before, and its network, where that is wanted."""
    job = evaluation.job
    known = job.known or find_row(job, job.folder)
    if known is None or not lacks_network(job, known):
        return known, None
    network = load_network(job.network, evaluation.task)
    if network is None:
        message = "the trained network was not kept: it is trained again."
        warnings.warn(Notice("missing-file", message, path=job.network), stacklevel=2)
        return None, None
    if job.save is not None:
        with _not_fatal(f"the trained network could not be kept in {job.save}", "--save"):
            copy_network(Path(str(job.network)), Path(job.save))
    return known, network


def _found_by_another(job: EvaluationJob) -> Row | None:
    """What another process found meanwhile: it is in the folder until the store has it, so that is asked first."""
    kept = find_row(job, job.folder)
    if kept is not None or job.store is None:
        return kept or job.known
    stored = retry_on_disconnect(Store(job.store).known)(job.identity)
    return stored[1] if stored else job.known


_STOPPED = "the training was stopped on its way: nothing is saved, shown or measured of it."


def _train(evaluation: Evaluation, row: Row) -> tuple[Row, nn.Module | None]:
    """Train, and keep the network where it is to be kept."""
    job, task = evaluation.job, evaluation.task
    curve: list[CurvePoint] = []
    stopped: list[int] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append({"step": int(step), "metrics": plain_numbers(metrics, "what is reported")})
        if job.max_steps is None or step < job.max_steps:
            return CONTINUE
        stopped.append(step)
        return STOP

    heartbeat, began = Heartbeat(job.folder if first_process() else None), time.perf_counter()
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
        fitted = task.fit(run)
        _check(evaluation, fitted)
    except (Exception, SystemExit) as error:
        show_traceback(error)
        return replace(row, curve=_finite(curve), error=reason_of_failure(error)), None
    finally:
        heartbeat.forget()
    pruned = stopped[:1] == [fitted.steps]
    row = replace(
        row,
        status="pruned" if pruned else "complete",
        error=None,
        steps=fitted.steps,
        metrics=fitted.metrics,
        test=fitted.test,
        extra_metrics=_known_numbers(fitted.extra_metrics),
        speeds=_known_numbers(fitted.speeds),
        curve=_finite(curve),
        provenance={**row.provenance, "fit_s": time.perf_counter() - began},
    )
    if not pruned:
        keep_network(task, job, fitted)
    elif job.save or job.render or job.measures:
        warnings.warn(Notice("skipped", _STOPPED), stacklevel=2)
    return row, fitted.network


def _start(job: EvaluationJob) -> Mapping[str, Tensor] | None:
    return None if job.start is None else read_weights(Path(job.start))


def _refuse_measures(evaluation: Evaluation) -> None:
    """Raise UserError where a measure is for no network of this kind."""
    if "conditioning" in evaluation.job.measures:
        from nas.costs.conditioning import check_attention  # which loads SciPy

        with count.meta_device():
            check_attention(evaluation.task.build(evaluation.job.architecture))


def _observe(evaluation: Evaluation, row: Row, network: nn.Module) -> Row:
    """The Row with what was measured of the trained network; what fails there takes no finished training with it."""
    job, task = evaluation.job, evaluation.task
    if "conditioning" in job.measures and not set(MEASURES["conditioning"]) <= set(row.extra_metrics):
        from nas.costs.conditioning import measure

        with _not_fatal("conditioning could not be measured", "--measure"):
            row = replace(row, extra_metrics={**row.extra_metrics, **measure(network, task.inputs(evaluation.recipe))})
    if job.render is not None and first_process():
        with _not_fatal(f"{job.render} could not be rendered", "--render"):
            task.render(network, Path(job.render))
    return row


@contextmanager
def _not_fatal(what: str, option: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        show_traceback(error)
        fields = {"option": option, **fields_of(error)}
        warnings.warn(Notice("failed", f"{what}: {reason_of(error)}", **fields), stacklevel=2)


def _profile(evaluation: Evaluation, row: Row) -> Row:
    """The Row with its profile, held to the job's limits on it."""
    job, limits = evaluation.job, evaluation.job.limits.profile_budget
    trace = Path(job.trace) if job.trace else None
    measured = profile(evaluation.task, job.architecture, evaluation.recipe, None, trace, job.threads)
    for quantity in limits.bounds:
        if quantity not in measured:
            raise RuntimeError(f"{quantity} is bounded and was not measured: {measured.get('profile_note')}")
    return _within(limits, replace(row, profile=measured), measured)


def _within(limits: Budget, row: Row, amounts: Mapping[str, Any]) -> Row:
    """The Row, over budget where amounts are not within limits."""
    has = {quantity: amounts[quantity] or 0 for quantity in limits.bounds}  # None where the record does not tell
    if limits.allows(has):
        return row
    text = ", ".join(f"{name}={has[name]}" if name in COUNT_COSTS else f"{name}={has[name]:.4g}" for name in has)
    return replace(row, status="over-budget", error=f"{text} is not within {limits}")


def _check(evaluation: Evaluation, fitted: FitResult) -> None:
    """Raise where a metric is missing or not finite, or `fit` gave something else."""
    task = evaluation.task
    if not isinstance(fitted, FitResult):
        raise TypeError(f"fit of task {task.name!r} must return a FitResult, got {type(fitted).__name__}")
    for metric in task.metrics_for(evaluation.recipe):
        if metric.name not in fitted.metrics:
            raise RuntimeError(f"fit of task {task.name!r} gave no {metric.name!r}")
    for name, value in {**fitted.metrics, **{f"test_{name}": value for name, value in fitted.test.items()}}.items():
        if not math.isfinite(value):
            raise Diverged(f"{name} is {float(value)}")


def _known_numbers(values: Mapping[str, float]) -> dict[str, float]:
    """Those that are finite: what is told beside the metrics must not take a Row with it."""
    return {name: number for name, number in values.items() if math.isfinite(number)}


def _finite(curve: list[CurvePoint]) -> tuple[CurvePoint, ...]:
    return tuple(point for point in curve if all(map(math.isfinite, point["metrics"].values())))


def _write(job: EvaluationJob, row: Row, began: float) -> Row:
    """The Row with its time; a complete one is kept in the job's folder too, until the store has it."""
    if "wall_s" not in row.provenance:  # a known Row has that of its training
        row = replace(row, provenance={**row.provenance, "wall_s": time.perf_counter() - began})
    if job.folder is not None and row.status == "complete" and first_process():
        path = Path(job.folder, KEPT)
        try:
            write_checked(path, row.to_json().encode())
        except OSError as error:
            message = f"{path} could not be kept: {error.strerror}."
            warnings.warn(Notice("unwritable", message, path=str(path)), stacklevel=2)
    return row
