"""`nas.retrofit`: train a residual network further with another topology."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas.engine.scheduler import evaluate_all, evaluation_store
from nas.environment.paths import DEFAULT_STORE, folder_of_retrofit
from nas.evaluation.retrofit import origin_of, retrofit_job
from nas.request.job import EvaluationJob, text_of
from nas.request.resolve import parse_overrides
from nas.request.text_checks import check_call, pairs_of
from nas.workers.resources import Resources
from results.records.row import Row


def retrofit(
    checkpoint: str | Path,
    topology: str,
    *,
    task: str | None = None,
    preset: str | None = None,
    settings: str | Mapping[str, Any] = "",
    seed: int = 0,
    threads: int = 1,
    data: str | Path | None = None,
    study: str | None = None,
    storage: str = DEFAULT_STORE,
    save: str | Path | None = None,
) -> Row:
    """Replace the topology of a trained residual network, with equal outputs at first, and train it further.

    Preset, settings and data default to those of the checkpoint. Name the task if it is your own file: a checkpoint
    runs no code. The result is saved in `save`, or next to the checkpoint, in a folder CHECKPOINT-TOPOLOGY.

    Raises:
        UserError: An invalid request. A failed training is a Row with the reason.
    """
    check_call(topology=topology, settings=settings, seed=seed, threads=threads, storage=storage)
    origin = origin_of(Path(checkpoint), task, preset, text_of(data))
    job = EvaluationJob(
        task=origin.reference,
        architecture=origin.task.base,  # replaced by `retrofit_job`
        preset=origin.preset,
        settings=parse_overrides(origin.task, origin.preset, {**origin.settings, **pairs_of(settings)}),
        seed=seed,
        data=origin.data,
        save=str(folder_of_retrofit(checkpoint, topology, save)),
        threads=threads,
    )
    with evaluation_store(storage, study):  # checks the study before anything is written
        job = retrofit_job(origin, topology, job)
    return evaluate_all([job], storage, study, Resources(workers=1, threads=threads))[0]
