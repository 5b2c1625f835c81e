"""The identity of an evaluation, equal on every machine."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from results.records.strict_json import JSON, MAX_LEVELS, to_json_value
from search_spaces.architecture.architecture import Architecture


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
    """Return the identity of an evaluation: 16 hex digits, equal exactly for equal inputs, on every machine.

    The order of the recipe's settings does not matter; 1 and 1.0 are the same number.

    Raises:
        TypeError, UserError: The recipe holds a value that JSON does not have.
    """
    fields = {
        "task": task,
        "task_version": task_version,
        "data": data,
        "architecture": architecture.record(),
        "recipe": recipe,
        "seed": seed,
        "start": start,
    }
    if code is not None:  # only for a task in a file; for an installed task, its version stands for the code
        fields["code"] = code
    record = to_json_value(fields, "identity", infinite=True, levels=MAX_LEVELS + 1)
    text = json.dumps(_canonical(record), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    """Write equal numbers alike: whole floats become integers."""
    if isinstance(value, dict):
        return {name: _canonical(element) for name, element in value.items()}
    if isinstance(value, list):
        return [_canonical(element) for element in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
