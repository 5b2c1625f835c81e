"""The installed tasks by name. Loads none of them, and no torch."""

from search_spaces.registry import Registry

TASKS = Registry("nas.tasks", "task")

TASK_FAMILIES = Registry("nas.families", "family of tasks")
"""Functions from a name to a Task's class, for what is too many to list: FAMILY:NAME."""
