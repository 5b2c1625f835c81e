"""Which architecture is to be trained with a fresh seed, when a search confirms what it has found.

Trainings go to candidates in proportion to how likely they stand on the front: the next is that with the greatest
chance for each training it would then have had (the method of V. D'Hondt, 1878, for seats by votes). So the surest have
a fresh seed first, the next ones follow, and what turns out not to stand there gets no more.
"""

import numpy as np

from nas.sampling.beliefs import Beliefs
from nas.sampling.history import measured
from nas.sampling.proposer import Situation
from results.pareto import chances

DRAWS = 256
"""Of what may be true."""

CONTENDERS = 256
"""Candidates that are looked at, at most."""


def contender(situation: Situation, since: int) -> int:
    """The candidate whose next training confirms most; trials numbered from `since` on are those that confirm."""
    random = np.random.default_rng(situation.seed)
    known = measured(situation.tried).at_most(CONTENDERS, random)
    drawn = Beliefs(situation, known).draws(known.indices, DRAWS, random)
    confirming = situation.tried.indices[situation.tried.numbers >= since]
    trained = np.array([(confirming == index).sum() for index in known.indices])
    return int(known.indices[(chances(drawn) / (1 + trained)).argmax()])
