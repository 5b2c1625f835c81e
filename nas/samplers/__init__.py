"""What proposes candidates: an Optuna sampler that is true to a budget, and the ways of searching inside it."""

from nas.samplers.budget_sampler import BudgetSampler, Exhausted
from nas.samplers.load import proposer
from nas.samplers.proposer import Proposer, Situation

__all__ = ["BudgetSampler", "Exhausted", "Proposer", "Situation", "proposer"]
