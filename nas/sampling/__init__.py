"""What proposes architectures: an Optuna sampler that is true to a budget, and the ways of searching inside it."""

from nas.sampling.sampler import DEFAULT, SAMPLERS, BudgetSampler, Exhausted

__all__ = ["DEFAULT", "SAMPLERS", "BudgetSampler", "Exhausted"]
