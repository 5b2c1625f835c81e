"""CPU time of a search's coordinator for one trial, relative to plain Optuna with the same sampler.

The study starts with some completed trials in SQLite. Further trials are proposed, evaluated in no time and told: by
`nas.engine.scheduler` with Rows, and by Optuna as in its documentation, with the results in one attribute. Since
workers compute elsewhere, this time limits how many of them one coordinator can keep busy. Memory is that of the whole
process.
"""

import random
import shutil
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.trial import create_trial

from benchmarks.form import Figure, child_peaks_mb, main
from nas.engine.plan import SearchPlan
from nas.engine.scheduler import Scheduler
from nas.request.job import EvaluationJob, resolve_job
from nas.request.search_request import SearchRequest, build_request
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.registry import DEFAULT
from nas.store.leases import leases_in
from nas.store.optuna_study import open_storage, open_study
from nas.store.store import Store
from results.records.row import Row
from search_spaces.support.spec import Scalar

SIZES = (100, 1000, 10_000)
OPTUNAS: dict[str, type[BaseSampler]] = {"random": RandomSampler, "nsga2": NSGAIISampler, "tpe": TPESampler}


class ImmediateWorkers:
    """Workers that complete every job immediately."""

    capacity = 1

    def __init__(self) -> None:
        self._jobs: list[EvaluationJob] = []

    def submit(self, job: EvaluationJob) -> None:
        """Store the job."""
        self._jobs.append(job)

    def collect(self, patience: float | None = None) -> list[tuple[EvaluationJob, Row]]:
        """Return made-up Rows."""
        jobs, self._jobs = self._jobs, []
        return [(job, made_up(resolve_job(job).row)) for job in jobs]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release nothing."""


def made_up(row: Row) -> Row:
    """Return the Row with made-up results, determined by its architecture."""
    draw = random.Random(row.architecture.key)
    metrics = {"accuracy": draw.random(), "accuracy_se": 0.01, "loss": draw.random(), "loss_se": 0.01}
    curve = tuple({"step": step, "metrics": metrics} for step in range(5))
    costs = replace(row.costs, flops=draw.randrange(10**6, 10**9), params=draw.randrange(10**4, 10**6))
    return replace(row, status="complete", error=None, metrics=metrics, test=metrics, curve=curve, costs=costs)


def search_request(sampler: str) -> SearchRequest:
    """Return a request for a search in a space of 16,128 architectures."""
    heads = ",".join(map(str, range(1, 49)))
    return build_request(
        "digits-vit", "joint", "", [f"heads={heads}"], (), "accuracy,flops",
        preset="smoke", settings="", seed=0, sampler=sampler, data=None,
    )  # fmt: skip


def fill(folder: Path, size: int, search: SearchRequest) -> str:
    """Create a store with a study of `size` completed trials, and return its URL."""
    url = f"sqlite:///{folder}/studies.db"
    store = Store(url, make=True)
    sampler = BudgetSampler(search.candidates, search.config.sampler)
    study = open_study(open_storage(url), "s", search.config, sampler)
    members = random.Random(0).sample(list(search.candidates), size)
    axes = sampler.infer_relative_search_space(study, None)  # type: ignore[arg-type]  # the trial is not read
    points = [search.candidates.space.members[member] for member in members]
    for number, (member, point) in enumerate(zip(members, points, strict=True)):
        job = EvaluationJob(task="digits-vit", architecture=member.architecture, preset="smoke", number=number)
        row = made_up(resolve_job(job).row)
        store.add(row, "s", number)
        values = [row.metrics["accuracy"], float(row.costs.flops or 0)]
        distributions = {name: axes[name] for name in point}
        study.add_trial(create_trial(params=point, distributions=distributions, values=values))
    return url


def ours(url: str, size: int, trials: int, search: SearchRequest) -> float:
    """Return the coordinator's CPU milliseconds for each trial."""
    store = Store(url, make=True)
    sampler = BudgetSampler(search.candidates, search.config.sampler)
    study = resume_study(url, search, sampler)
    with leases_in(store) as leases:
        scheduler = Scheduler(store, "s", leases, ImmediateWorkers(), [])
        scheduler.run(SearchPlan(study, store, search, leases, sampler, size + 1))  # warms up caches
        plan = SearchPlan(study, store, search, leases, sampler, size + 1 + trials)
        began = time.process_time()
        scheduler.run(plan)
        return (time.process_time() - began) / trials * 1000


def resume_study(url: str, search: SearchRequest, sampler: BudgetSampler) -> optuna.Study:
    """Load the study with another sampler."""
    return optuna.load_study(study_name="s", storage=open_storage(url), sampler=sampler)


def optunas(url: str, trials: int, search: SearchRequest, sampler: BaseSampler) -> float:
    """Return Optuna's CPU milliseconds for each trial, on a study of the same trials."""
    study = optuna.load_study(study_name="s", storage=url, sampler=sampler)
    space = search.candidates.space
    axes = BudgetSampler(search.candidates).infer_relative_search_space(study, None)  # type: ignore[arg-type]

    def one() -> None:
        trial = study.ask()
        point = {name: suggest_value(trial, name, axes[name]) for name in axes if "." not in name}
        for name in space.options(point):
            suggest_value(trial, name, axes[name])
        trial.set_user_attr("results", {"accuracy": 0.5, "flops": 10**7, "curve": [0.1] * 20})
        study.tell(trial, [0.5, 1e7])

    one()
    began = time.process_time()
    for _ in range(trials):
        one()
    return (time.process_time() - began) / trials * 1000


def suggest_value(trial: optuna.Trial, name: str, axis: BaseDistribution) -> Scalar:
    """Return Optuna's suggestion for an axis."""
    if isinstance(axis, IntDistribution):
        return trial.suggest_int(name, axis.low, axis.high, log=axis.log)
    if isinstance(axis, FloatDistribution):
        return trial.suggest_float(name, axis.low, axis.high, log=axis.log)
    assert isinstance(axis, CategoricalDistribution)
    return trial.suggest_categorical(name, axis.choices)  # type: ignore[return-value]  # no choice is None


def copy(source: Path, to: Path) -> str:
    """Copy a store and return the copy's URL."""
    shutil.copytree(source, to)
    return f"sqlite:///{to}/studies.db"


def peak_mb(source: Path, size: int) -> float:
    """Return the peak memory in megabytes of a separate process that coordinates."""
    (peak,) = child_peaks_mb(
        "from benchmarks.coordinator import *\n"
        f"ours({f'sqlite:///{source}/studies.db'!r}, {size}, 5, search_request({DEFAULT!r})); peak()"
    )
    return peak


def figures(quick: bool) -> dict[str, Figure]:
    """Measure twenty more trials at each size; if quick, five at the two smaller sizes."""
    trials, figures_by_name = 5 if quick else 20, dict[str, Figure]()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    for size in SIZES[: 2 if quick else 3]:
        with tempfile.TemporaryDirectory() as folder:
            source, searches = Path(folder, "made"), {name: search_request(name) for name in (DEFAULT, *OPTUNAS)}
            source.mkdir()
            fill(source, size, searches["random"])
            for name, search in searches.items():
                ours_ms = ours(copy(source, Path(folder, f"{name}-ours")), size, trials, search)
                if name not in OPTUNAS:
                    figures_by_name[f"ms_per_trial_{name}_{size}"] = Figure(ours_ms, "ms", "lower")
                    continue
                optuna_ms = optunas(copy(source, Path(folder, name)), trials, search, OPTUNAS[name](seed=0))
                ratio, aim = f"ms_per_trial_over_optuna_{name}_{size}", 1.0 if size == 1000 else None
                figures_by_name[ratio] = Figure(
                    ours_ms / optuna_ms, "x", "lower", aim, {"nas_ms": ours_ms, "optuna_ms": optuna_ms}
                )
            if size == SIZES[2]:
                figures_by_name[f"peak_mb_{size}"] = Figure(peak_mb(source, size), "MB", "lower", 1000)
    return figures_by_name


if __name__ == "__main__":
    main("coordinator", figures)
