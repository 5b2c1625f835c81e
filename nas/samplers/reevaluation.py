"""The choice of the architecture that a search re-evaluates next with a held-out seed.

Trainings are allocated in proportion to each candidate's probability of being on the front. The next one goes to the
largest p_front / (1 + re-evaluations so far), V. D'Hondt's method of 1878 for seats by votes. Likely candidates get a
held-out seed first, and those that prove not to be on the front get no more.
"""

import numpy as np

from nas.samplers.history import candidate_means
from nas.samplers.posterior import Posterior
from nas.samplers.proposer import SearchState
from results.stats.front_probability import front_probabilities
from results.stats.gaussian_process import Indices

DRAWS = 256
"""Number of samples of the posterior."""

CONTENDERS = 256
"""Largest number of candidates that are compared."""


def next_reevaluation(state: SearchState, since: int, exclude: Indices) -> int:
    """Return the candidate to re-evaluate next; trials with numbers from `since` on are re-evaluations.

    Candidates in `exclude` cannot be trained with another seed; there must be others with values.
    """
    random = np.random.default_rng(state.seed)
    all_means = candidate_means(state.trials)
    means = all_means.at_most(CONTENDERS, random)
    if np.isin(means.indices, exclude).all():
        means = all_means
    draws = Posterior(state, means).draws(means.indices, DRAWS, random)
    reevaluations = state.trials.indices[state.trials.root_numbers >= since]
    counts = np.array([(reevaluations == index).sum() for index in means.indices])
    gains = np.where(np.isin(means.indices, exclude), -1.0, front_probabilities(draws) / (1 + counts))
    return int(means.indices[gains.argmax()])
