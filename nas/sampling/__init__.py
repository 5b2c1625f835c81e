"""What proposes candidates: an Optuna sampler that is true to a budget, and the ways of searching inside it."""

from nas.sampling.proposer import Proposer, Situation
from nas.sampling.registry import proposer
from nas.sampling.sampler import BudgetSampler, Exhausted

__all__ = ["BudgetSampler", "Exhausted", "Proposer", "Situation", "proposer"]
