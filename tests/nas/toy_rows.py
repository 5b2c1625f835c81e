"""Toy rows."""

from typing import Any

from results.records.row import Row
from search_spaces.architecture.architecture import Architecture

LITTLE = Architecture(depth=1, width=8, heads=1, head_dim=8, hidden=16)


def a_row(**changes: Any) -> Row:
    """A complete Row with changes."""
    values: dict[str, Any] = {
        "task": "any",
        "task_version": 1,
        "architecture": LITTLE,
        "preset": "smoke",
        "seed": 0,
        "status": "complete",
        "directions": {"accuracy": "max"},
        "metrics": {"accuracy": 0.5},
    }
    return Row(**{**values, **changes})
