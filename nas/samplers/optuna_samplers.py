"""Optuna's samplers within a budget: their proposals are moved to the nearest untried candidate."""

from collections.abc import Callable, Mapping

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, GPSampler, NSGAIISampler, TPESampler

from nas.samplers.encoding import Axis
from nas.samplers.proposer import Proposer, SearchState
from search_spaces.support.spec import Scalar


class OptunaSampler(Proposer):
    """A proposer that uses an Optuna sampler, constructed anew for each proposal so that it keeps no state.

    Args:
        make: Maps a seed to a sampler.
        infers: Whether the sampler chooses the axes that it draws jointly, as in Optuna; CMA-ES, for one, excludes
            words. Otherwise it draws all axes that apply everywhere, from the first trial on.
    """

    def __init__(self, make: Callable[[int], BaseSampler], *, infers: bool = False) -> None:
        self._make = make
        self._infers = infers

    def propose(self, state: SearchState) -> int:
        """Move the sampler's point to the nearest candidate."""
        study, trial, coordinates = state.study, state.trial, state.coordinates
        sampler = self._make(state.seed)
        params = sampler.sample_relative(study, trial, self._joint_axes(sampler, state))

        def value_of(axis: Axis) -> Scalar:
            if axis.distribution.single():
                return coordinates.space.axes[axis.name][0]
            if axis.name not in params:
                params[axis.name] = sampler.sample_independent(study, trial, axis.name, axis.distribution)
            value: Scalar = params[axis.name]
            return value

        target = coordinates.encode(coordinates.walk(value_of))
        return coordinates.nearest(target, state.new, np.random.default_rng(state.seed))

    def _joint_axes(self, sampler: BaseSampler, state: SearchState) -> dict[str, BaseDistribution]:
        """Return the axes that the sampler draws jointly, among those that apply everywhere."""
        everywhere: Mapping[str, Axis] = state.coordinates.common_axes
        if not self._infers:
            return {name: axis.distribution for name, axis in everywhere.items() if not axis.distribution.single()}
        axes = sampler.infer_relative_search_space(state.study, state.trial)
        return {name: distribution for name, distribution in axes.items() if name in everywhere}


class Random(Proposer):
    """Random search: an untried candidate, drawn uniformly."""

    def propose(self, state: SearchState) -> int:
        return int(np.random.default_rng(state.seed).choice(state.random_members))


def tpe() -> Proposer:
    """Optuna's multivariate tree-structured Parzen estimator, moved to the nearest untried candidate."""
    return OptunaSampler(lambda seed: TPESampler(multivariate=True, seed=seed))


def nsga2() -> Proposer:
    """Optuna's genetic algorithm with a population of 16, moved to the nearest untried candidate."""
    return OptunaSampler(lambda seed: NSGAIISampler(population_size=16, seed=seed))


def gp() -> Proposer:
    """Optuna's Gaussian processes, moved to the nearest untried candidate; slow, and loads torch."""
    return OptunaSampler(lambda seed: GPSampler(seed=seed))
