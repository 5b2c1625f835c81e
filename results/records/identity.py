"""What tells one evaluation from all others, on every machine."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from results.records.strict_json import JSON, MOST_LEVELS, plain
from search_spaces.architecture.architecture import Architecture

LATER: Mapping[str, JSON] = {
    "optimizer": "adamw",
    "parametrization": "standard",
    "ema": 0.0,
    "hours": 0.0,
    "batch_ramp": 0.0,
    "recompute_mixing": False,
    "window": 0,
}
"""Settings that came later -> what they were before, without a name."""

_OF_STEPS = frozenset({"lr", "weight_decay", "betas", "schedule", "clip"})
_OF_ROLLS = frozenset({"lr", "rounds", "updates", "unroll", "capacity"})
"""Settings of the recipes that these belong to, and of those that `window` belongs to."""


def settings(recipe: Mapping[str, JSON]) -> dict[str, JSON]:
    """A recipe with what came later where it was recorded before: one and the same recipe has the same settings."""
    lacking = [name for name in LATER if name not in recipe]
    fitting = [name for name in lacking if recipe.keys() >= (_OF_ROLLS if name == "window" else _OF_STEPS)]
    return {**recipe, **{name: LATER[name] for name in fitting}}


def identity_of(
    *,
    task: str,
    task_version: int,
    data: str | None,
    architecture: Architecture,
    recipe: Mapping[str, JSON],
    seed: int,
    start: str | None,
    code: str | None = None,
) -> str:
    """What is trained and how, as 16 hex digits, on every machine: equal things have equal digits, others others.

    The order of the recipe's settings says nothing; 1 and 1.0 are one number. A field of the architecture that has its
    default is left out, and a setting of the recipe that is an empty list or text, "adamw" as the optimizer,
    "standard" as the parametrization, 0 as ema, hours, batch_ramp or window or false as recompute_mixing: a new one
    leaves the identities that there are.

    Raises:
        TypeError, UserError: The recipe holds what is not of JSON.
    """
    shape = {one.name: getattr(architecture, one.name) for one in fields(architecture)}
    shape = {one.name: shape[one.name] for one in fields(architecture) if shape[one.name] != one.default}
    said = {
        "task": task,
        "task_version": task_version,
        "data": data,
        "architecture": shape,
        "recipe": {name: value for name, value in recipe.items() if value not in ([], (), "", LATER.get(name, ""))},
        "seed": seed,
        "start": start,
    }
    if code is not None:  # of a task in a file of its own; of an installed one its version stands for the code
        said["code"] = code
    whole = plain(said, "identity", infinite=True, levels=MOST_LEVELS + 1)
    text = json.dumps(_canonical(whole), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    """Numbers that are equal spelt alike."""
    if isinstance(value, dict):
        return {name: _canonical(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_canonical(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
