"""`nas search`: from what was asked for to a study, a front, a table and a picture."""

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from nas import report, store
from nas.budget import Budget, feasible, parse_budget
from nas.commands.results import show_front
from nas.cost import cheap_counts, meta_device
from nas.evaluate import task_of
from nas.objectives import resolve
from nas.progress import Progress
from nas.sampling import DEFAULT, SAMPLERS, BudgetSampler
from nas.search import Coordinator
from nas.store import Settings
from nas.workers import usual, workers
from results.row import Direction
from search_spaces.architecture import Architecture, parse_architecture
from search_spaces.catalog import space_named
from search_spaces.errors import UserError, unknown
from search_spaces.space import SearchSpace
from search_spaces.topologies.registry import refusal
from tasks.base import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a search command asked for; the fields are the options of that name."""

    task: str
    space: str
    arch: str
    budget: list[str]
    objectives: str | None
    trials: int
    preset: str
    seed: int
    sampler: str
    workers: int | None
    data: Path | None
    study: str | None
    storage: str
    plot: Path | None
    profile: bool = False


def run(request: Request) -> None:
    """Search, then show the front."""
    console = report.screen()
    report.check_picture(request.plot)
    task = task_of(request.task, request.data)
    space = space_of(task, request.space, request.arch, request.preset)
    budget = parse_budget(request.budget)
    settings = settings_for(request, task, space, budget)
    check_device({*budget.bounds, *settings.objectives})
    members = feasible(space, lambda architecture: cheap_counts(task, architecture), budget)
    name = request.study or default_name(settings)
    within = f"{len(members)} of {len(space)} architectures of space {space.name!r} are within {budget}"
    if not str(budget):
        within = f"{len(space)} architectures in space {space.name!r}"
    console.print(f"study {name}: {within}", soft_wrap=True, highlight=False, markup=False)
    task.prepare()
    storage = store.open_storage(request.storage, make=True)
    sampler = BudgetSampler(members, inner=settings.sampler, seed=request.seed)
    with store.only_writer(request.storage, name), store.clear_errors(request.storage):
        study = store.open_study(storage, name, settings, sampler)
        done = len(store.rows_of(study))
        count = request.workers or min(usual(), request.trials)
        folder = Path("nas-runs", f"{store.slug(name)}-{digest(request.storage, settings)}")
        with (
            Progress(settings.task, list(settings.objectives), done, request.trials) as progress,
            workers(count) as pool,
        ):
            traces = Path("nas-runs", f"{store.slug(name)}-traces") if request.profile else None
            Coordinator(study, settings, sampler, pool, folder, progress.add, traces).search(request.trials)
        if not sampler.remaining(study):
            console.print("every architecture within the budget has been tried")
    show_front(name, request.storage, request.plot)


def architecture_of(task: Task, preset: str, arch: str, topology: str | None = None) -> Architecture:
    """The preset's base architecture, changed by `--arch` and `--topology`.

    Raises:
        UserError: An unknown preset, or an architecture that cannot be wired.
    """
    if preset not in task.presets:
        raise unknown(f"preset of task {task.name!r}", preset, task.presets)
    if topology is not None:
        arch = ",".join(filter(None, (arch, f"topology={topology}")))
    architecture = parse_architecture(arch, task.base_for(preset))
    reason = refusal(architecture)
    if reason is not None:
        raise UserError(reason)
    return architecture


def space_of(task: Task, name: str, arch: str, preset: str) -> SearchSpace:
    """A named space around the task's base architecture under a preset, changed by `--arch`."""
    space = space_named(name, architecture_of(task, preset, arch))
    if arch and space.base.model:
        raise UserError(f"space {name!r} has a base of its own, got --arch {arch!r} as well. Leave that out.")
    if space.base.model:
        with meta_device():
            task.build(space.base)  # which raises where the task has no models of timm's: now, and not in every trial
    return space


def settings_for(request: Request, task: Task, space: SearchSpace, budget: Budget) -> Settings:
    """The settings of a study. Raises UserError for an unknown objective, preset or sampler."""
    metrics: dict[str, Direction] = {metric.name: metric.direction for metric in task.metrics}
    named = request.objectives.split(",") if request.objectives else [task.metrics[0].name, "flops"]
    sampler = request.sampler or DEFAULT
    if sampler not in SAMPLERS:
        raise unknown("sampler", sampler, SAMPLERS)
    return Settings(
        task=request.task,
        task_version=task.version,
        space=space.name,
        base=str(space.base),
        budget=str(budget),
        objectives=resolve([name.strip() for name in named], metrics),
        preset=request.preset,
        seed=request.seed,
        sampler=sampler,
        data=str(request.data) if request.data else None,
        metrics=metrics,
        baselines=task.baselines(request.preset),
    )


def check_device(quantities: Collection[str]) -> None:
    """Raise UserError where energy is asked for and there is nothing that tells it."""
    if "energy_j" in quantities and not torch.cuda.is_available():
        raise UserError("energy_j is measured on NVIDIA GPUs, and there is none. Take step_ms or flops.")


def default_name(settings: Settings) -> str:
    """The task and a digest of the settings: the same command finds its study again."""
    return f"{store.slug(Path(settings.task).name)}-{digest('', settings)}"


def digest(storage: str, settings: Settings) -> str:
    """Six hex digits of a storage and of what was asked for."""
    asked = [storage, asdict(replace(settings, baselines={}))]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:6]
