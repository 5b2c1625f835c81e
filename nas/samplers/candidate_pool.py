"""The pool of candidates that a proposal chooses from, in a space that cannot be enumerated.

The pool has the tried candidates, random members of the space, and mutations of the best tried ones. It is drawn anew
for each trial from the trial's seed. So a proposal depends only on the seed, the trial's number and earlier trials, as
in an enumerated space.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import final

import numpy as np
import optuna

from nas.budget.implicit.budget_dp import BudgetDP
from nas.samplers.candidates import Candidates
from nas.samplers.encoding import CandidateEncoding
from nas.samplers.history import History, TrialTable, params_of
from nas.store.optuna_study import trials_of
from results.stats.gaussian_process import Array, Indices
from results.stats.pareto import non_dominated
from search_spaces.spaces.space import Candidate, Point
from search_spaces.support.spec import Scalar

RANDOM_MEMBERS, MUTATIONS = 100, 200
"""Largest numbers of random members and of mutations of the best members in a pool."""

NEIGHBOURS = 32
"""Number of mutations of a tried member, the nearest of which replaces it."""

_ELSEWHERE = 1e9


@final
class ImplicitCandidates(Candidates):
    """The members of a non-enumerable space within a budget."""

    def __init__(self, dp: BudgetDP) -> None:
        self._dp = dp
        self._space = dp.space
        self._first: Point | None = None

    def candidate(self, params: Mapping[str, Scalar]) -> Candidate | None:
        """Return the candidate of a complete point within the budget, else None."""
        return self._space.candidate(params) if self._dp.allows(dict(params)) else None

    def remaining(self, study: optuna.Study) -> int:
        return self._dp.number - len(self._points_by_candidate(study))

    def trial_table(self, study: optuna.Study) -> TrialTable:
        """Return the study's trials; indices follow the candidates' order in the trials."""
        return History(study, MemberPool(self._dp, self._points_by_candidate(study), 0)).trial_table()

    def proposal_pool(self, study: optuna.Study, number: int, seed: int) -> tuple[CandidateEncoding, TrialTable]:
        """Return the candidates with trials, the space's first and a pool, and the table of the trials."""
        trial_points = self._points_by_candidate(study, without=number)
        trials = History(study, MemberPool(self._dp, trial_points, 0)).trial_table(number)
        random = np.random.default_rng([seed, 1])
        points = {**trial_points, **self._by_candidate([self._first_point()])}
        points |= self._by_candidate(self._dp.draw(random) for _ in range(RANDOM_MEMBERS))
        while len(points) == len(trial_points) < self._dp.number:  # few are left, and none of them was drawn
            points |= self._by_candidate([self._dp.draw(random)])
        random_count = len(points) - len(trial_points)
        points |= self._by_candidate(self._mutations(list(trial_points.values()), trials, random))
        return MemberPool(self._dp, points, len(trial_points) + random_count), trials

    def first_index(self, coordinates: CandidateEncoding, seed: int) -> int:
        """Return the index of the space's first candidate, or of a feasible one near it."""
        index = coordinates.index(self._first_point())
        assert index is not None  # it is in every pool
        return index

    def _first_point(self) -> Point:
        if self._first is None:
            first = self._space.point(self._space.first)
            assert first is not None  # a space contains its base
            near = MemberPool(self._dp, {}, 0).nearest_point(CandidateEncoding(self._space, {}).encode(first))
            self._first = near or self._dp.draw(np.random.default_rng(0))
        return self._first

    def _points_by_candidate(self, study: optuna.Study, without: int | None = None) -> dict[Candidate, Point]:
        trials = trials_of(study)
        points = (params_of(trial) for trial in trials if trial.number != without)
        return self._by_candidate(point for point in points if self._dp.allows(point))

    def _by_candidate(self, points: Iterator[Point] | list[Point]) -> dict[Candidate, Point]:
        return {self._space.candidate(point): point for point in points}

    def _mutations(self, points: list[Point], trials: TrialTable, random: np.random.Generator) -> Iterator[Point]:
        """Yield mutations of the front's members; none without values."""
        complete = np.flatnonzero(np.isfinite(trials.values).all(axis=1))
        best = trials.indices[complete[non_dominated(trials.values[complete])]] if len(complete) else complete
        for _ in range(MUTATIONS if len(best) else 0):
            mutant = self._dp.mutate(points[int(random.choice(best))], random)
            if mutant is not None:
                yield mutant


class MemberPool(CandidateEncoding):
    """Coordinates of some members within a budget; `nearest` and `matching` add others.

    Args:
        dp: All members.
        members: The initial members.
        random_count: Number of these, at the start, that are not mutations.
    """

    def __init__(self, dp: BudgetDP, members: Mapping[Candidate, Point], random_count: int) -> None:
        super().__init__(dp.space, members)
        self._dp, self._random_count, self._initial = dp, random_count, len(members)

    def random_members(self, indices: Indices) -> Indices:
        """Return the members that were drawn at random, without mutations."""
        return indices[indices < self._random_count]

    def is_new(self, index: int) -> bool:
        """Return whether a member was added after the start."""
        return index >= self._initial

    def nearest_point(self, target: Array) -> Point | None:
        """Return the member nearest to a target, or one near it; None if none is found."""
        starts = np.cumsum([0, *(len(self.encode_axis(name, None)) for name in self.axes)])
        spans = dict(zip(self.axes, pairwise(starts), strict=True))

        def distance(axis: str, value: Scalar) -> float:
            start, end = spans[axis]
            return float(((self.encode_axis(axis, value) - target[start:end]) ** 2).sum())

        return self._dp.nearest(distance)

    def nearest(self, target: Array, indices: Indices, random: np.random.Generator) -> int:
        """Return the nearest member; if it was tried, the nearest of its mutations and of `indices`."""
        point = self.nearest_point(target)
        index = None if point is None else self.index(point)
        if point is not None and (index is None or index in indices):
            return self._add(point) if index is None else index
        mutations = [] if point is None else [self._dp.mutate(point, random) for _ in range(NEIGHBOURS)]
        new_points = [mutant for mutant in mutations if mutant is not None and self.index(mutant) is None]
        nearby = super().nearest(target, indices, random) if len(indices) else None
        points = [*new_points, *([] if nearby is None else [self.point(nearby)])]
        best = min(points, key=lambda other: float(((self.encode(other) - target) ** 2).sum()))
        index = self.index(best)
        return self._add(best) if index is None else index

    def matching(self, params: Mapping[str, Scalar]) -> Indices:
        """Return the indices of points with these parameters; if there is none, add a member with them."""
        matches = super().matching(params)
        if len(matches):
            return matches
        point = self._dp.nearest(lambda axis, value: _ELSEWHERE * (axis in params and params[axis] != value))
        return np.array(
            [self._add(point)] if point is not None and params.items() <= point.items() else [], dtype=np.intp
        )

    def _add(self, point: Point) -> int:
        self.candidates.append(self.space.candidate(point))
        self._points.append(point)
        self._index[self._point_key(point)] = len(self._points) - 1
        return len(self._points) - 1
