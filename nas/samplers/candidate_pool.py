"""Proposing from a space that cannot be listed: among those tried, a pool of others, and what is asked for beside.

The pool is drawn anew for each trial, from its seed: some members with the same chance each, and some that differ
little from the best that were tried. So what a trial is given rests on the seed, its number and the trials before it,
as in a space that is listed.
"""

from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import final

import numpy as np
import optuna

from nas.budget.implicit.budget_dp import BudgetDP
from nas.samplers.candidates import Candidates
from nas.samplers.encoding import Coordinates
from nas.samplers.history import History, TrialTable, params_of
from nas.store.optuna_study import trials_of
from results.stats.gaussian_process import Array, Indices
from results.stats.pareto import non_dominated
from search_spaces.spaces.space import Candidate, Point
from search_spaces.support.spec import Scalar

DRAWN, MUTATED = 100, 200
"""Members of a pool that are drawn at random, and that are mutated from the best of those tried; at most so many."""

NEIGHBOURS = 32
"""Mutations of a member that was tried already, of which the nearest is taken in its stead."""

_ELSEWHERE = 1e9


@final
class ImplicitCandidates(Candidates):
    """The members of a programme."""

    def __init__(self, programme: BudgetDP) -> None:
        self._programme = programme
        self._space = programme.space
        self._first: Point | None = None

    def candidate(self, params: Mapping[str, Scalar]) -> Candidate | None:
        """What stands at a complete point that is inside."""
        return self._space.candidate(params) if self._programme.allows(dict(params)) else None

    def remaining(self, study: optuna.Study) -> int:
        """All but those tried."""
        return self._programme.number - len(self._tried(study))

    def tried(self, study: optuna.Study) -> TrialTable:
        """What trials have tried, by the order in which candidates were."""
        return History(study, Growing(self._programme, self._tried(study), 0)).tried()

    def around(self, study: optuna.Study, number: int, seed: int) -> tuple[Coordinates, TrialTable]:
        """Those tried, what is tried first, and a pool."""
        tried = self._tried(study, without=number)
        history = History(study, Growing(self._programme, tried, 0)).tried(number)
        random = np.random.default_rng([seed, 1])
        points = {**tried, **self._named([self._start()])}
        points |= self._named(islice(self._drawn(random), DRAWN))
        while len(points) == len(tried) < self._programme.number:  # few are left, which none of these is
            points |= self._named([self._programme.draw(random)])
        drawn = len(points) - len(tried)
        points |= self._named(islice(self._mutated(list(tried.values()), history, random), MUTATED))
        return Growing(self._programme, points, len(tried) + drawn), history

    def start(self, coordinates: Coordinates, seed: int) -> int:
        """The first of the space, or a feasible candidate near it."""
        index = coordinates.index(self._start())
        assert index is not None  # it is in every pool
        return index

    def _start(self) -> Point:
        if self._first is None:
            first = self._space.point(self._space.first)
            assert first is not None  # a space has its base
            near = Growing(self._programme, {}, 0).near(Coordinates(self._space, {}).place(first))
            self._first = near or self._programme.draw(np.random.default_rng(0))
        return self._first

    def _tried(self, study: optuna.Study, without: int | None = None) -> dict[Candidate, Point]:
        trials = trials_of(study)
        points = (params_of(trial) for trial in trials if trial.number != without)
        return self._named(point for point in points if self._programme.allows(point))

    def _named(self, points: Iterator[Point] | list[Point]) -> dict[Candidate, Point]:
        return {self._space.candidate(point): point for point in points}

    def _drawn(self, random: np.random.Generator) -> Iterator[Point]:
        while True:
            yield self._programme.draw(random)

    def _mutated(self, points: list[Point], tried: TrialTable, random: np.random.Generator) -> Iterator[Point]:
        """Mutations of what nothing tried is better than in all values; none where nothing has values."""
        valued = np.flatnonzero(np.isfinite(tried.values).all(axis=1))
        best = tried.indices[valued[non_dominated(tried.values[valued])]] if len(valued) else valued
        for _ in range(MUTATED if len(best) else 0):
            mutated = self._programme.mutate(points[int(random.choice(best))], random)
            if mutated is not None:
                yield mutated


class Growing(Coordinates):
    """Some members of a programme, to which those are added that are asked for by their place.

    Args:
        programme: All members.
        members: Those that are here from the start.
        drawn: How many of these, at the front, were not mutated from others.
    """

    def __init__(self, programme: BudgetDP, members: Mapping[Candidate, Point], drawn: int) -> None:
        super().__init__(programme.space, members)
        self._programme, self._drawn, self._listed = programme, drawn, len(members)

    def drawn(self, indices: Indices) -> Indices:
        """Those that were drawn at random."""
        return indices[indices < self._drawn]

    def is_new(self, index: int) -> bool:
        """Whether it was added."""
        return index >= self._listed

    def near(self, place: Array) -> Point | None:
        """The member nearest to a place, or one near it; None where none is found."""
        starts = np.cumsum([0, *(len(self.along(name, None)) for name in self.axes)])
        spans = dict(zip(self.axes, pairwise(starts), strict=True))

        def distance(axis: str, value: Scalar) -> float:
            start, end = spans[axis]
            return float(((self.along(axis, value) - place[start:end]) ** 2).sum())

        return self._programme.nearest(distance)

    def nearest(self, place: Array, among: Indices, random: np.random.Generator) -> int:
        """The nearest member, or where that was tried, the nearest of its mutations and of those to choose from."""
        point = self.near(place)
        index = None if point is None else self.index(point)
        if point is not None and (index is None or index in among):
            return self._add(point) if index is None else index
        mutations = [] if point is None else [self._programme.mutate(point, random) for _ in range(NEIGHBOURS)]
        fresh = [one for one in mutations if one is not None and self.index(one) is None]
        listed = super().nearest(place, among, random) if len(among) else None
        offers = [*fresh, *([] if listed is None else [self.point(listed)])]
        best = min(offers, key=lambda one: float(((self.place(one) - place) ** 2).sum()))
        index = self.index(best)
        return self._add(best) if index is None else index

    def fitting(self, given: Mapping[str, Scalar]) -> Indices:
        """The points here that have the values given; where none has, a member that does is added."""
        fits = super().fitting(given)
        if len(fits):
            return fits
        point = self._programme.nearest(lambda axis, value: _ELSEWHERE * (axis in given and given[axis] != value))
        return np.array(
            [self._add(point)] if point is not None and given.items() <= point.items() else [], dtype=np.intp
        )

    def _add(self, point: Point) -> int:
        self.candidates.append(self.space.candidate(point))
        self._points.append(point)
        self._index[self._names(point)] = len(self._points) - 1
        return len(self._points) - 1
