"""The registry of installed tasks. Loads no task and no torch."""

from typing import Any, Literal

from search_spaces.support.errors import UserError
from search_spaces.support.registry import Registry

TASKS = Registry("nas.tasks", "task", "One of your own is FILE.py:CLASS.")

TASK_FAMILIES = Registry("nas.families", "family of tasks")
"""Functions from a name to a Task class, for tasks too many to list: FAMILY:NAME."""


def kind_of(reference: str) -> Literal["file", "family", "name"]:
    """Return how a task is referenced: FILE.py:CLASS, FAMILY:NAME or an installed name."""
    path, _, _ = reference.rpartition(":")
    family, colon, _ = reference.partition(":")
    if (path or reference).endswith(".py"):
        return "file"
    return "family" if colon and family in TASK_FAMILIES.names() else "name"


def check_reference(reference: Any) -> None:
    """Raise UserError if the reference is no text, or a name that is not installed."""
    if not isinstance(reference, str):
        message = (
            f"task must be a name or FILE.py:CLASS, got {reference!r:.60}. Save the class in a file, and name both."
        )
        raise UserError("wrong-type", message, option="task", type=type(reference).__name__)
    if kind_of(reference) == "name":
        TASKS.check(reference)
