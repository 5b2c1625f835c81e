"""The installed tasks by name. Loads none of them, and no torch."""

from typing import Literal

from search_spaces.support.registry import Registry

TASKS = Registry("nas.tasks", "task")

TASK_FAMILIES = Registry("nas.families", "family of tasks")
"""Functions from a name to a Task's class, for what is too many to list: FAMILY:NAME."""


def kind_of(reference: str) -> Literal["file", "family", "name"]:
    """Whether a task is called FILE.py:CLASS, FAMILY:NAME or by an installed name."""
    path, _, _ = reference.rpartition(":")
    family, colon, _ = reference.partition(":")
    if (path or reference).endswith(".py"):
        return "file"
    return "family" if colon and family in TASK_FAMILIES.names() else "name"


def check_reference(reference: str) -> None:
    """Raise UserError where a task is called by a name that is not installed."""
    if kind_of(reference) == "name":
        TASKS.check(reference)
