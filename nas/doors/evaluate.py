"""`nas.evaluate`: train one architecture, and what is to be found out about it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas.places import DEFAULT_STORE
from tasks.progress import LOADING, said_if_slow

if TYPE_CHECKING:
    from nas.curve_log import LogFormat
    from results.row import Row


def evaluate(
    task: str,
    *,
    arch: str = "",
    topology: str | None = None,
    preset: str = "proxy",
    settings: str | Mapping[str, Any] = "",
    seed: int = 0,
    threads: int = 1,
    data: str | Path | None = None,
    start: str | Path | None = None,
    study: str | None = None,
    storage: str = DEFAULT_STORE,
    until: int | None = None,
    save: str | Path | None = None,
    render: str | Path | None = None,
    profile: bool = False,
    measure: str | Sequence[str] = (),
    log: "LogFormat | None" = None,
) -> "Row":
    """Train one architecture and return its Row; what the store knows is not trained again.

    With `start`, the folder of a trained network of this task, it begins with those weights and has that architecture.
    Raises UserError where what was asked for cannot be. A training that failed is a Row with its reason.
    """
    with said_if_slow(LOADING):
        from nas.asking import architecture_of, check_asked, check_measures, made_folder, settings_of
        from nas.jobs import EvaluationJob, fresh_task, text_of
        from nas.profiling.profile import trace_of
        from nas.retrofitting import started_from
        from nas.scheduler import evaluate_all
        from nas.workers.resources import Resources
    check_asked(seed=seed, threads=threads, until=until, storage=storage, log=log)
    of = fresh_task(task, data)
    began = None if start is None else started_from(Path(start), of, save, {"--arch": arch, "--topology": topology})
    architecture = began or architecture_of(of, preset, arch, topology)
    if render is not None:
        of.render(None, Path(render))
    job = EvaluationJob(
        task=task,
        architecture=architecture,
        preset=preset,
        settings=settings_of(of, preset, settings),
        seed=seed,
        data=text_of(data),
        start=text_of(start),
        until=until,
        profiled=profile,
        trace=str(trace_of(of.name, architecture)) if profile else None,
        measures=check_measures(measure, of, architecture),
        render=text_of(render),
        save=made_folder(save),
        threads=threads,
    )
    return evaluate_all([job], storage, study, Resources(workers=1, threads=threads), log)[0]
