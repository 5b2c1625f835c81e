"""Which members of a space keep a budget on a task: costs are counted, and shown where that takes its time."""

from functools import partial

from nas.budget.bounds import Budget, Feasible, feasible
from nas.budget.implicit.budget_dp import BudgetDP
from nas.costs.count import cheap_counts
from nas.costs.interpolation import interpolate_counts
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.progress import Progress
from tasks.base import Task


def within(space: SearchSpace, task: Task, budget: Budget) -> Feasible | BudgetDP:
    """The candidates within a budget, listed where they can be."""
    number = len(space.architectures) if space.is_enumerable else None
    with Progress(f"costs in space {space.name!r} on {task.name}", number) as progress:

        def counts(architecture: Architecture) -> dict[str, int]:
            found = cheap_counts(task, architecture)
            progress.advance()
            return found

        if not space.is_enumerable:
            return BudgetDP(space, counts, budget)
        if not budget.counted.bounds or task.closed_form(space.base) is not None:
            return feasible(space, counts, budget)
        fitted = {}
        for architecture, counted in interpolate_counts(space.architectures, partial(cheap_counts, task)):
            fitted[architecture] = counted
            progress.advance()
        return feasible(space, fitted.__getitem__, budget)
