"""`nas.retrofit`: a trained residual network goes on with another topology."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas.engine.scheduler import evaluate_all, rows_go_to
from nas.environment.paths import DEFAULT_STORE, folder_of_retrofit
from nas.evaluation.job import EvaluationJob, text_of
from nas.evaluation.resolve import settings_of
from nas.evaluation.retrofit import origin_of, rewired
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
    """Give the residual network of CHECKPOINT another topology, at first computing the same, and train it further.

    Preset, its settings and data are those that the network was trained with, where they are not given. A task in a
    file of yours has to be named: what a checkpoint says of itself runs no code. What comes of it is kept in `save`, or
    beside the checkpoint, in a folder of its name and the topology's.

    Raises:
        UserError: What was asked for cannot be. A training that failed is a Row with its reason.
    """
    check_call(topology=topology, settings=settings, seed=seed, threads=threads, storage=storage)

    origin = origin_of(Path(checkpoint), task, preset, text_of(data))
    job = EvaluationJob(
        task=origin.reference,
        architecture=origin.task.base,  # until it is rewired
        preset=origin.preset,
        settings=settings_of(origin.task, origin.preset, {**origin.settings, **pairs_of(settings)}),
        seed=seed,
        data=origin.data,
        save=str(folder_of_retrofit(checkpoint, topology, save)),
        threads=threads,
    )
    with rows_go_to(storage, study):  # or nothing is written
        job = rewired(origin, topology, job)
    return evaluate_all([job], storage, study, Resources(workers=1, threads=threads))[0]
