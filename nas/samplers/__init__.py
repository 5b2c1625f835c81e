"""What proposes candidates: an Optuna sampler that is true to a budget, and the ways of searching inside it."""

from typing import TYPE_CHECKING

from search_spaces.support.faces import lazily

if TYPE_CHECKING:
    from nas.samplers.budget_sampler import BudgetSampler, Exhausted
    from nas.samplers.proposer import Proposer, SearchState

__all__ = [
    "BudgetSampler",
    "Exhausted",
    "Proposer",
    "SearchState",
]

_HOMES = {
    "BudgetSampler": "nas.samplers.budget_sampler",
    "Exhausted": "nas.samplers.budget_sampler",
    "Proposer": "nas.samplers.proposer",
    "SearchState": "nas.samplers.proposer",
}

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
