"""`nas.check_mup`: check whether networks of all widths learn alike, with and without muP."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.analysis.mup_check import CoordinateCheck, check_coordinates
from nas.budget.objectives import names_in
from nas.request.job import recipe_of, reload_task
from nas.request.resolve import architecture_of, parse_overrides
from nas.request.text_checks import check_call
from search_spaces.support.errors import UserError
from search_spaces.support.progress import status_if_slow
from tasks.recipes.recipe import Recipe
from tasks.training.supervised import SupervisedTask


def check_mup(
    task: str,
    *,
    arch: str = "",
    topology: str | None = None,
    widths: str | Sequence[int] | None = None,
    seeds: int = 3,
    preset: str = "proxy",
    settings: str | Mapping[str, Any] = "",
    data: str | Path | None = None,
) -> CoordinateCheck:
    """Check muP: measure how far five training steps change the outputs of layers, at several widths.

    Width grows by the number of heads, and hidden features with it; the narrowest network is muP's base. It has the
    task's own width unless `widths` are given. In the standard parametrization, outputs of wider networks change more.
    With a correct muP the slope over width is near 0.

    Raises:
        UserError: Invalid widths or networks, an optimizer without muP, or a task without examples.
    """
    check_call(task=task, topology=topology, settings=settings, seeds=seeds)
    task_object = reload_task(task, data)
    recipe = recipe_of(task_object, preset, parse_overrides(task_object, preset, settings))
    if not isinstance(task_object, SupervisedTask) or not isinstance(recipe, Recipe):
        message = f"`nas check-mup` needs a supervised task trained by a Recipe, got {task_object.name!r}."
        raise UserError("unsupported", message, task=task_object.name)
    if not seeds:
        raise UserError("out-of-range", "--seeds must be at least 1, got 0.", option="--seeds", value=0, least=1)
    architecture = architecture_of(task_object, preset, arch, topology)
    texts = names_in(widths) if isinstance(widths, str) else widths
    wide = [*map(_width, texts)] if texts else [architecture.width * factor for factor in (1, 2, 4, 8)]
    if len(wide) < 2 or wide != sorted({*wide}):
        message = f"--widths must be two or more numbers in increasing order, got {','.join(map(str, wide))}."
        raise UserError("out-of-range", message, option="--widths", value=tuple(wide))
    with status_if_slow(f"training networks of width {wide[0]} to {wide[-1]} ..."):
        return check_coordinates(task_object, architecture, recipe, wide, seeds)


def _width(text: str | int) -> int:
    if not str(text).strip().isdigit():
        message = f"--widths must be whole numbers such as 64,128,256, got {text!r}."
        raise UserError("bad-syntax", message, option="--widths", value=str(text))
    return int(text)
