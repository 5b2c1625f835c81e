"""Optuna's own samplers, made true to a budget: what they propose is moved to the nearest untried architecture."""

from collections.abc import Callable

import numpy as np
from optuna.samplers import BaseSampler

from nas.sampling.axes import Axis
from nas.sampling.proposer import Proposer, Situation
from search_spaces.spec import Scalar


class Borrowed(Proposer):
    """A sampler of Optuna's, made anew from a seed for each proposal, so that nothing rests on what it did before."""

    def __init__(self, make: Callable[[int], BaseSampler]) -> None:
        self._make = make

    def propose(self, situation: Situation) -> int:
        """Move the sampler's point, which need not be an architecture, to the nearest one."""
        study, trial, coordinates = situation.study, situation.trial, situation.coordinates
        sampler = self._make(situation.seed)
        varied = {
            name: axis.distribution
            for name, axis in coordinates.axes.items()
            if "." not in name and not axis.distribution.single()
        }
        together = sampler.sample_relative(study, trial, varied)

        def value_of(axis: Axis) -> Scalar:
            if axis.distribution.single():
                return coordinates.feasible.space.axes[axis.name][0]
            if axis.name not in together:
                together[axis.name] = sampler.sample_independent(study, trial, axis.name, axis.distribution)
            value: Scalar = together[axis.name]
            return value

        place = coordinates.place(coordinates.walk(value_of))
        return coordinates.nearest(place, situation.untried, np.random.default_rng(situation.seed))


class Random(Proposer):
    """Any untried architecture, all with the same chance."""

    def propose(self, situation: Situation) -> int:
        """Draw one."""
        return int(np.random.default_rng(situation.seed).choice(situation.untried))
