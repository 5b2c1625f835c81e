"""Which members of a space keep a budget on a task: costs are counted, and shown where that takes its time."""

from nas.budget import Budget, Feasible, feasible
from nas.counting import cheap_counts
from nas.unlisted.programme import Programme
from search_spaces.architecture import Architecture
from search_spaces.space import SearchSpace
from tasks.base import Task
from tasks.progress import Progress


def within(space: SearchSpace, task: Task, budget: Budget) -> Feasible | Programme:
    """The candidates within a budget, listed where they can be."""

    number = len(space.architectures) if space.is_listed else None
    with Progress(f"costs in space {space.name!r} on {task.name}", number) as progress:

        def counts(architecture: Architecture) -> dict[str, int]:
            found = cheap_counts(task, architecture)
            progress.advance()
            return found

        return feasible(space, counts, budget) if space.is_listed else Programme(space, counts, budget)
