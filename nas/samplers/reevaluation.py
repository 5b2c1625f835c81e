"""Which architecture is to be trained with a fresh seed, when a search confirms what it has found.

Trainings go to candidates in proportion to how likely they stand on the front: the next is that with the greatest
chance for each training it would then have had (the method of V. D'Hondt, 1878, for seats by votes). So the surest have
a fresh seed first, the next ones follow, and what turns out not to stand there gets no more.
"""

import numpy as np

from nas.samplers.history import measured
from nas.samplers.posterior import Posterior
from nas.samplers.proposer import SearchState
from results.stats.gaussian_process import Indices
from results.stats.pareto import front_probabilities

DRAWS = 256
"""Of what may be true."""

CONTENDERS = 256
"""Candidates that are looked at, at most."""


def contender(situation: SearchState, since: int, spent: Indices) -> int:
    """The candidate whose next training confirms most; trials numbered from `since` on are those that confirm.

    `spent` are those that cannot be trained with another seed; there must be others with values.
    """
    random = np.random.default_rng(situation.seed)
    every = measured(situation.tried)
    known = every.at_most(CONTENDERS, random)
    if np.isin(known.indices, spent).all():
        known = every
    drawn = Posterior(situation, known).draws(known.indices, DRAWS, random)
    confirming = situation.tried.indices[situation.tried.numbers >= since]
    trained = np.array([(confirming == index).sum() for index in known.indices])
    gains = np.where(np.isin(known.indices, spent), -1.0, front_probabilities(drawn) / (1 + trained))
    return int(known.indices[gains.argmax()])
