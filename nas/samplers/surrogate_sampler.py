"""Search by a model of the objectives over the feasible candidates.

Trained objectives are modeled (`nas.samplers.posterior`), counted ones are known. The next training maximizes the
expected hypervolume of the front of expected values: the knowledge gradient (P. Frazier, W. Powell and S. Dayanik,
"The Knowledge-Gradient Policy for Correlated Normal Beliefs", 2009), as if a training changed only its own candidate's
expectation. New candidates and further seeds of tried ones are compared by the same rule. The set is finite, so no
acquisition function is optimized and no proposal is moved into the budget.

Shapes: N = candidates with values, C = the pool of new candidates, K = objectives, R = directions, Z = outcomes.
"""

import numpy as np

from nas.samplers.history import CandidateMeans, candidate_means
from nas.samplers.hypervolume_gain import HypervolumeGain
from nas.samplers.posterior import Posterior
from nas.samplers.promotion import fill_predicted_values
from nas.samplers.proposer import Proposer, SearchState
from results.stats.gaussian_process import Array, GaussianProcess, Indices, Observations, Scales

START = 8
"""Candidates that must have values before the model is used; until then proposals are random."""

POOL, OBSERVATIONS, FAILURES = 500, 128, 32
"""Largest numbers of new candidates, observations and failures in a proposal, so that its time stays constant."""

EXPLORATION = (1, 2, 4, 8)
"""Factors on the predictions' uncertainty; the smallest one that promises a gain is used."""

_FAILURE_SCALES = Scales(noise=0.02, nugget=1e-6, remainder=1.0, numeric=1.0, one_hot=1.0)

MIN_GAIN = 1e-4
"""Smallest gain that counts, as a fraction of the hypervolume."""


class Surrogate(Proposer):
    """Gaussian processes over the feasible candidates; proposes the candidate that adds most to the expected front."""

    def propose(self, state: SearchState) -> int:
        """Choose by the model, or at random while fewer than START candidates have values."""
        random = np.random.default_rng(state.seed)
        means = candidate_means(fill_predicted_values(state.trials))
        if len(means.indices) < START:
            return int(random.choice(state.random_members))
        means = means.at_most(OBSERVATIONS, random)
        pool = random.permutation(state.new)[:POOL].astype(np.intp)
        chance = _success_probability(state, means, pool, random)
        posterior = Posterior(state, means)
        repeats, candidates = posterior.predict(means.indices), posterior.predict(pool)
        running = posterior.predict(posterior.running)
        hypervolume = HypervolumeGain(np.concatenate([repeats.values, running.values]), candidates.values, random)
        may_repeat = np.isin(means.indices, state.repeatable)
        for exploration in EXPLORATION:
            new_gains = hypervolume.gain(candidates.lookahead_values(exploration, random)) * chance
            repeat_gains = hypervolume.repeat_gain(repeats.lookahead_values(exploration, random)) * may_repeat
            if max(new_gains.max(initial=0.0), repeat_gains.max(initial=0.0)) > MIN_GAIN * hypervolume.total:
                break
        better_again = repeat_gains.max(initial=0.0) > new_gains.max(initial=0.0)
        return int(means.indices[repeat_gains.argmax()] if better_again else pool[new_gains.argmax()])


def _success_probability(state: SearchState, means: CandidateMeans, at: Indices, random: np.random.Generator) -> Array:
    """Return the probability that an evaluation succeeds, from the places of failures: [C]."""
    trials = state.trials
    failures = random.permutation(trials.indices[trials.has_failed])[:FAILURES]
    if not len(failures):
        return np.ones(len(at))
    is_failure = np.repeat([0.0, 1.0], [len(means.indices), len(failures)])
    features = state.coordinates.features.at(np.concatenate([means.indices, failures]))
    model = GaussianProcess(features, Observations.single(is_failure), _FAILURE_SCALES)
    share, _ = model.predict(state.coordinates.features.at(at))
    return np.asarray(1 - np.clip(share, 0, 1))
