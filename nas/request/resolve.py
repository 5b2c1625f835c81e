"""Text -> the architectures, spaces and recipes that it names."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.budget.objectives import MEASURES, names_in
from nas.costs.count import meta_device
from nas.request.job import recipe_of
from nas.request.text_checks import pairs_of
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.block_segments import topologies_of
from search_spaces.spaces.catalog import get_space
from search_spaces.spaces.parsing import parse_architecture, parse_axes
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.errors import UserError, unknown_name_error
from search_spaces.support.spec import Scalar, Spec, split_top_level
from search_spaces.topologies.registry import compatible_topologies, incompatibility_reason
from tasks.base import Task
from tasks.recipes.settings import plain_values

DEFAULT_SPACE = "joint"

RecipeOverrides = tuple[tuple[str, Scalar], ...]
"""Overrides of a preset, sorted by name."""


def architecture_of(task: Task, preset: str, arch: str, topology: str | None = None) -> Architecture:
    """Return the preset's base architecture, changed by `--arch` and `--topology`.

    Raises:
        UserError: An unknown preset, or an architecture that its topology refuses.
    """
    if preset not in task.presets:
        raise unknown_name_error("preset", preset, task.presets, of=f"task {task.name!r}")
    if topology is not None:
        if any(part.partition("=")[0].strip() == "topology" for part in split_top_level(arch)):
            message = f"--topology {topology} and --arch {arch} both set the topology. Leave one out."
            raise UserError("conflict", message, option="--topology", value=topology, architecture=arch)
        arch = ",".join(filter(None, (arch, f"topology={topology}")))
    architecture = parse_architecture(arch, task.base_for(preset))
    reason = incompatibility_reason(architecture)
    if reason is not None:
        others = () if topology is None else _others(architecture)
        remedy = f" Use another topology, for example {', '.join(others)}." if others else ""
        raise UserError("unsupported", reason + remedy, option="topology", value=architecture.topology, choices=others)
    return architecture


def _others(architecture: Architecture) -> tuple[str, ...]:
    """Return other topologies that fit; none if the architecture's own one fits with other options."""
    texts_of = compatible_topologies(architecture)
    if {Spec.parse(text).name for text in topologies_of(architecture.topology)} <= texts_of.keys():
        return ()
    return tuple(texts[0] for texts in texts_of.values())


def space_of(task: Task, name: str, arch: str, preset: str, axes: Iterable[str] = ()) -> SearchSpace:
    """Return a named space around the preset's base architecture, changed by `--arch` and `--axis`.

    Without a name it is the task's own space if there is one, else `joint`.

    Raises:
        UserError: An unknown space, an invalid axis, or an axis of a field that the recipe lacks.
    """
    fixed_space = task.fixed_space()
    if fixed_space is not None:
        options = [option for option, value in (("--space", name), ("--arch", arch), ("--axis", [*axes])) if value]
        if options:
            message = f"{task.name} has its own space and takes no {options[0]}. Leave it out."
            raise UserError("conflict", message, option=options[0], task=task.name)
        return fixed_space
    space = get_space(name or DEFAULT_SPACE, architecture_of(task, preset, arch))
    if arch and space.base.model:
        message = f"space {name!r} has its own base and takes no --arch, got {arch!r}. Leave it out."
        raise UserError("conflict", message, option="--arch", value=arch, space=name)
    if space.base.model:
        with meta_device():
            task.build(space.base)  # raises for tasks without timm models: now, not in every trial
    space = space.with_axes(parse_axes(axes))
    for axis, values in space.axes.items():
        if axis.startswith("recipe."):
            _check_recipes(task, preset, axis, values)
    return space


def _check_recipes(task: Task, preset: str, axis: str, values: tuple[Any, ...]) -> None:
    """Raise UserError for values that the recipe refuses, and for two that give equal recipes: they are one point."""
    recipes: list[Any] = []
    for value in values:
        recipe = recipe_of(task, preset, ((axis.removeprefix("recipe."), value),))
        if recipe in recipes:
            same = values[recipes.index(recipe)]
            message = f"axis {axis} must have distinct values, got {same} and {value}. Leave one out."
            raise UserError("duplicate", message, option=axis, value=value, equals=same)
        recipes.append(recipe)


def parse_overrides(task: Task, preset: str, settings: str | Mapping[str, Any]) -> RecipeOverrides:
    """Return the overrides of `--set`, each value with its field's type.

    Raises:
        UserError: Not FIELD=VALUE, a repeated or unknown field, or an invalid value.
    """
    overrides = pairs_of(settings)
    values = plain_values(recipe_of(task, preset, tuple(overrides.items())))
    return tuple((name, _hashable(values[name])) for name in sorted(overrides))


def check_max_steps(task: Task, max_steps: int | None) -> None:
    """Raise UserError if `max_steps` is set and the task's trainings report only at their end."""
    if max_steps is not None and not task.reports_intermediate:
        message = f"--max-steps needs intermediate reports, and {task.name} makes none. Leave it out."
        raise UserError("unsupported", message, option="--max-steps", value=max_steps, task=task.name)


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def check_measures(measures: str | Sequence[str], task: Task, architecture: Architecture) -> tuple[str, ...]:
    """Return the names of measures. Raises UserError, before training, if one does not apply."""
    names = names_in(measures)
    for name in names:
        if name not in MEASURES:
            raise unknown_name_error("measure", name, MEASURES)
    check_measurable_network(task, architecture, names)
    return tuple(names)


def check_measurable_network(task: Task, architecture: Architecture, measures: Sequence[str]) -> None:
    """Raise UserError if a measure does not apply to networks of this kind."""
    if "conditioning" in measures:
        from nas.costs.conditioning import check_attention  # loads SciPy

        with meta_device():
            check_attention(task.build(architecture))


def make_folder(folder: str | Path | None) -> str | None:
    """Create a folder if it is missing, and return its path. Called early, so that hours of training are not lost."""
    if folder is None:
        return None
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"--save must be a folder that can be created, got {folder} ({error.strerror})."
        raise UserError("unwritable", message, option="--save", path=str(folder)) from error
    return str(folder)
