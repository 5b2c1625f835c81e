"""Search by a model of the objectives, over the feasible candidates themselves.

What a training tells is modelled (`nas.samplers.posterior`), what counting tells is known. The next training is the one
after which the front of expected values is expected to have the most hypervolume: the knowledge gradient (P. Frazier,
W. Powell and S. Dayanik, "The Knowledge-Gradient Policy for Correlated Normal Beliefs", 2009), as if a training moved
the expectation of its own candidate alone. So a new candidate and another seed of one that was tried are weighed by the
same rule. The set is finite: nothing is optimised, and nothing has to be moved into the budget.

Shapes: N = candidates with values, C = the pool looked at, K = objectives, R = directions, Z = outcomes.
"""

import numpy as np

from nas.samplers.history import CandidateMeans, measured
from nas.samplers.hypervolume import Hypervolume
from nas.samplers.posterior import Posterior
from nas.samplers.promotion import as_if_ended
from nas.samplers.proposer import Proposer, SearchState
from results.stats.gaussian_process import Array, GaussianProcess, Indices, Observations, Scales

START = 8
"""Candidates that must have values before a model is believed; they are drawn at random until then."""

POOL, OBSERVED, UNFINISHED = 500, 128, 32
"""At most so many are looked at, drawn at random, so that a proposal costs the same however long the search."""

EXPLORATION = (1, 2, 4, 8)
"""How much less certain than they are expectations are taken to be: the least with which anything promises a gain."""

_OF_FAILURES = Scales(noise=0.02, nugget=1e-6, remainder=1.0, sizes=1.0, words=1.0)

LEAST_GAIN = 1e-4
"""What is a gain, as a share of the hypervolume."""


class Surrogate(Proposer):
    """Gaussian processes over the feasible candidates: proposes what adds most to what is known of the front."""

    def propose(self, situation: SearchState) -> int:
        """Choose by the model, or at random while too little is known."""
        random = np.random.default_rng(situation.seed)
        known = measured(as_if_ended(situation.tried))
        if len(known.indices) < START:
            return int(random.choice(situation.drawn))
        known = known.at_most(OBSERVED, random)
        pool = random.permutation(situation.untried)[:POOL].astype(np.intp)
        chance = _chance_of_values(situation, known, pool, random)
        beliefs = Posterior(situation, known)
        here, there = beliefs.expected(known.indices), beliefs.expected(pool)
        under_way = beliefs.expected(beliefs.running)
        hypervolume = Hypervolume(np.concatenate([here.values, under_way.values]), there.values, random)
        may_repeat = np.isin(known.indices, situation.again)
        for weight in EXPLORATION:
            new = hypervolume.gain(there.outcomes(weight, random)) * chance
            again = hypervolume.gain_again(here.outcomes(weight, random)) * may_repeat
            if max(new.max(initial=0.0), again.max(initial=0.0)) > LEAST_GAIN * hypervolume.reached:
                break
        better_again = again.max(initial=0.0) > new.max(initial=0.0)
        return int(known.indices[again.argmax()] if better_again else pool[new.argmax()])


def _chance_of_values(situation: SearchState, known: CandidateMeans, at: Indices, random: np.random.Generator) -> Array:
    """How likely an evaluation ends with values, by where others failed: [C]."""
    tried = situation.tried
    without = random.permutation(tried.indices[tried.failed])[:UNFINISHED]
    if not len(without):
        return np.ones(len(at))
    ended_without = np.repeat([0.0, 1.0], [len(known.indices), len(without)])
    places = situation.coordinates.as_places.at(np.concatenate([known.indices, without]))
    model = GaussianProcess(places, Observations.single(ended_without), _OF_FAILURES)
    share, _ = model.predict(situation.coordinates.as_places.at(at))
    return np.asarray(1 - np.clip(share, 0, 1))
