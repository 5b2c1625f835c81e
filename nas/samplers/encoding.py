"""A finite space as Optuna distributions and as coordinates, one of each for every axis.

Shapes: M = candidates, F = coordinates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from nas.budget.bounds import Feasible
from nas.store.optuna_study import changed_choices_error
from results.stats.gaussian_process import Array, Features, Indices
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.axis_names import option_of
from search_spaces.spaces.space import Candidate, Point, SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Scalar


class Axis(ABC):
    """One axis of a space.

    Attributes:
        name: "depth", "topology", "dca.k", "recipe.lr" ...
        distribution: The Optuna distribution of recorded values.
    """

    name: str
    distribution: BaseDistribution

    @abstractmethod
    def suggest(self, trial: optuna.Trial) -> Scalar:
        """Ask a trial for the value."""

    @abstractmethod
    def encode(self, value: Scalar | None) -> Array:
        """Return the coordinates of a value; None if the axis does not apply."""


class NumericAxis(Axis):
    """An axis of numbers, scaled from 0 to 1. If all are positive, their logarithms are: ratios matter for sizes."""

    def __init__(self, name: str, values: Sequence[float]) -> None:
        self.name = name
        self._log = values[0] > 0
        self._low, self._high = values[0], values[-1]
        self.distribution: IntDistribution | FloatDistribution
        if all(isinstance(value, int) for value in values):
            self.distribution = IntDistribution(int(values[0]), int(values[-1]), log=self._log)
        else:
            self.distribution = FloatDistribution(values[0], values[-1], log=self._log)

    def suggest(self, trial: optuna.Trial) -> Scalar:
        if isinstance(self.distribution, IntDistribution):
            return trial.suggest_int(self.name, self.distribution.low, self.distribution.high, log=self._log)
        return trial.suggest_float(self.name, self._low, self._high, log=self._log)

    def encode(self, value: Scalar | None) -> Array:
        """Return one coordinate; the middle if the axis does not apply."""
        if value is None or self._low == self._high:
            return np.array([0.5])
        values = np.array([value, self._low, self._high], dtype=float)
        position, low, high = np.log(values) if self._log else values
        return np.array([(position - low) / (high - low)], dtype=float)


class CategoricalAxis(Axis):
    """An axis of words or booleans, each at distance 1 from every other."""

    def __init__(self, name: str, values: Sequence[Scalar]) -> None:
        self.name = name
        self._values = tuple(values)
        self.distribution = CategoricalDistribution(self._values)

    def suggest(self, trial: optuna.Trial) -> Scalar:
        """Ask a trial for one of the choices.

        Raises:
            UserError: The study has other choices, as when topologies were installed or removed since.
        """
        try:
            value = trial.suggest_categorical(self.name, self._values)
        except UserError:
            raise
        except ValueError as error:  # Optuna's: a study's choices are those of its first trial
            raise changed_choices_error(self.name, self.distribution) from error
        assert value is not None  # no choice is None
        return value

    def encode(self, value: Scalar | None) -> Array:
        """Return a coordinate for each word; all zero if the axis does not apply."""
        return np.array([0.5**0.5 * (value == word) for word in self._values])


class CandidateEncoding:
    """Coordinates of the feasible candidates of a space.

    An axis of one of n segments of blocks has the weight 1 / sqrt(n): an equal step in all segments is as far as a step
    of an axis of all blocks.

    Attributes:
        space: The space.
        axes: The space's axes by name.
        candidates: The candidates, in index order.

    Args:
        space: The space.
        members: The candidates and their points, in index order.
    """

    def __init__(self, space: SearchSpace, members: Mapping[Candidate, Point]) -> None:
        self.space = space
        self.candidates = list(members)
        self.axes = {name: _axis(name, values) for name, values in space.axes.items()}
        self._points = list(members.values())
        self._index = {self._point_key(point): index for index, point in enumerate(self._points)}
        self._weights = {axis: len(axes) ** -0.5 for axes in space.segments.values() for axis in axes}

    def __len__(self) -> int:
        return len(self._points)

    @classmethod
    def of(cls, feasible: Feasible) -> "CandidateEncoding":
        """Return the coordinates of all feasible candidates of an enumerated space."""
        return cls(feasible.space, {candidate: feasible.space.members[candidate] for candidate in feasible})

    def random_members(self, indices: Indices) -> Indices:
        """Return the candidates that are a uniform sample of all feasible ones: here, all of them."""
        return indices

    def is_new(self, index: int) -> bool:
        """Return whether a candidate was added during a proposal: here, never."""
        return False

    @property
    def common_axes(self) -> Mapping[str, Axis]:
        """The axes that apply to every topology: fields and the recipe's axes, without options."""
        return {name: axis for name, axis in self.axes.items() if option_of(name) is None}

    def point(self, index: int) -> Point:
        """Return a feasible candidate's value on each axis that applies to it."""
        return self._points[index]

    def index(self, point: Mapping[str, Scalar]) -> int | None:
        """Return the index of a point; None if it is not feasible or not complete."""
        return self._index.get(self._point_key(point))

    def matching(self, params: Mapping[str, Scalar]) -> Indices:
        """Return the indices of the points with these parameters."""
        matches = [params.items() <= point.items() for point in self._points]
        return np.flatnonzero(matches)

    def walk(self, value_of: Callable[[Axis], Scalar]) -> Point:
        """Build a point axis by axis; the topology decides which options apply."""
        point: Point = {name: value_of(axis) for name, axis in self.common_axes.items()}
        return {**point, **{name: value_of(self.axes[name]) for name in self.space.options(point)}}

    def encode(self, point: Mapping[str, Scalar]) -> Array:
        """Return the coordinates of any point, whether or not it is a member: [F]."""
        return np.concatenate([self.encode_axis(name, point.get(name)) for name in self.axes] or [np.zeros(1)])

    def encode_axis(self, name: str, value: Scalar | None) -> Array:
        """Return the coordinates of a value on one axis."""
        return np.asarray(self.axes[name].encode(value) * self._weights.get(name, 1.0))

    @cached_property
    def sizes(self) -> Array:
        """The logarithm of every feasible candidate's size, scaled from 0 to 1: [M, 1]."""
        logs = np.log([size(candidate.architecture) for candidate in self.candidates])
        return np.asarray((logs - logs.min()) / max(float(np.ptp(logs)), 1e-9))[:, None]

    @cached_property
    def encodings(self) -> Array:
        """Coordinates of every feasible candidate: [M, F]."""
        columns = []
        for name in self.axes:
            encoding_of = {value: self.encode_axis(name, value) for value in (*self.space.axes[name], None)}
            columns.append(np.array([encoding_of[point.get(name)] for point in self._points]))
        return np.concatenate(columns or [np.zeros((len(self), 1))], axis=1)

    @cached_property
    def features(self) -> Features:
        """Model features of every feasible candidate: numbers and the size, and separately one-hot ones."""
        one_hot = np.concatenate(
            [
                np.full(len(self.encode_axis(name, None)), isinstance(axis, CategoricalAxis))
                for name, axis in self.axes.items()
            ]
            or [np.zeros(1, dtype=bool)]
        )
        return Features(np.concatenate([self.encodings[:, ~one_hot], self.sizes], axis=1), self.encodings[:, one_hot])

    def nearest(self, target: Array, indices: Indices, random: np.random.Generator) -> int:
        """Return the index nearest to a target, with ties broken at random."""
        distances = (self._squares - 2 * self.encodings @ target)[indices]  # squared, up to a constant
        return int(random.choice(indices[distances <= distances.min() + 1e-9]))

    @cached_property
    def _squares(self) -> Array:
        return np.asarray((self.encodings**2).sum(axis=1))

    def _point_key(self, point: Mapping[str, Scalar]) -> tuple[Scalar | None, ...]:
        return tuple(map(point.get, self.axes))


def size(architecture: Architecture) -> float:
    """Return roughly the number of weights in a transformer's blocks, which most objectives depend on."""
    blocks = zip(*map(architecture.by_block, ("heads", "head_dim", "hidden")), strict=True)
    return float(architecture.width * sum(4 * heads * head_dim + 2 * hidden for heads, head_dim, hidden in blocks))


def _axis(name: str, values: Sequence[Scalar]) -> Axis:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return NumericAxis(name, sorted(numbers)) if len(numbers) == len(values) else CategoricalAxis(name, values)
