"""What tells one evaluation from all others, on every machine."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from results.records.strict_json import JSON, MAX_LEVELS, plain
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
    """What is trained and how, as 16 hex digits, on every machine: equal things have equal digits, others others.

    The order of the recipe's settings says nothing; 1 and 1.0 are one number.

    Raises:
        TypeError, UserError: The recipe holds what is not of JSON.
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
    if code is not None:  # of a task in a file of its own; of an installed one its version stands for the code
        fields["code"] = code
    record = plain(fields, "identity", infinite=True, levels=MAX_LEVELS + 1)
    text = json.dumps(_canonical(record), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    """Numbers that are equal spelt alike."""
    if isinstance(value, dict):
        return {name: _canonical(element) for name, element in value.items()}
    if isinstance(value, list):
        return [_canonical(element) for element in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
