"""The members of a space within a budget on a task, with progress if counting is slow."""

from functools import partial

from nas.budget.bounds import Budget, Feasible, feasible
from nas.budget.implicit.budget_dp import BudgetDP
from nas.costs.count import budget_counts
from nas.costs.interpolation import interpolate_counts
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.progress import Progress
from tasks.base import Task


def feasible_candidates(space: SearchSpace, task: Task, budget: Budget) -> Feasible | BudgetDP:
    """Return the candidates within a budget, as a list if the space is enumerable."""
    number = len(space.architectures) if space.is_enumerable else None
    with Progress(f"costs in space {space.name!r} on {task.name}", number) as progress:

        def counts(architecture: Architecture) -> dict[str, int]:
            amounts = budget_counts(task, architecture)
            progress.advance()
            return amounts

        if not space.is_enumerable:
            return BudgetDP(space, counts, budget)
        if not budget.count_budget.bounds or task.closed_form(space.base) is not None:
            return feasible(space, counts, budget)
        amounts_of = {}
        for architecture, amounts in interpolate_counts(space.architectures, partial(budget_counts, task)):
            amounts_of[architecture] = amounts
            progress.advance()
        return feasible(space, amounts_of.__getitem__, budget)
