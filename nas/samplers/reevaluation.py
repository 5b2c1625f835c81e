"""Which architecture a search re-evaluates next with a held-out seed.

Trainings go to candidates in proportion to how likely they stand on the front: the next is that with the greatest
chance for each training it would then have had (the method of V. D'Hondt, 1878, for seats by votes). So the surest have
a fresh seed first, the next ones follow, and what turns out not to stand there gets no more.
"""

import numpy as np

from nas.samplers.history import candidate_means
from nas.samplers.posterior import Posterior
from nas.samplers.proposer import SearchState
from results.stats.front_probability import front_probabilities
from results.stats.gaussian_process import Indices

DRAWS = 256
"""Samples of the posterior."""

CONTENDERS = 256
"""Most candidates that are compared."""


def next_reevaluation(state: SearchState, since: int, exclude: Indices) -> int:
    """The candidate to re-evaluate next; trials with numbers from `since` on are re-evaluations.

    Candidates in `exclude` cannot be trained with another seed; there must be others with values.
    """
    random = np.random.default_rng(state.seed)
    all_means = candidate_means(state.trials)
    means = all_means.at_most(CONTENDERS, random)
    if np.isin(means.indices, exclude).all():
        means = all_means
    draws = Posterior(state, means).draws(means.indices, DRAWS, random)
    reevaluations = state.trials.indices[state.trials.numbers >= since]
    counts = np.array([(reevaluations == index).sum() for index in means.indices])
    gains = np.where(np.isin(means.indices, exclude), -1.0, front_probabilities(draws) / (1 + counts))
    return int(means.indices[gains.argmax()])
