"""A finite space as Optuna and as geometry see it: a distribution and coordinates for each axis.

Shapes: M = candidates, F = coordinates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from nas.budget.bounds import Feasible
from nas.store.optuna_study import other_choices
from results.stats.gaussian_process import Array, Features, Indices
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.axis_names import option_of
from search_spaces.spaces.space import Candidate, Point, SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Scalar


class Axis(ABC):
    """One axis of a space, in both views.

    Attributes:
        name: "depth", "topology", "dca.k", "recipe.lr" ...
        distribution: What Optuna records values with.
    """

    name: str
    distribution: BaseDistribution

    @abstractmethod
    def suggest(self, trial: optuna.Trial) -> Scalar:
        """Ask a trial for the value."""

    @abstractmethod
    def place(self, value: Scalar | None) -> Array:
        """Coordinates of a value; None where the axis does not apply."""


class Numbers(Axis):
    """Numbers stand on a line from 0 to 1, by their logarithm where all are positive: sizes are told by factors."""

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
        """Ask for an integer or a float."""
        if isinstance(self.distribution, IntDistribution):
            return trial.suggest_int(self.name, self.distribution.low, self.distribution.high, log=self._log)
        return trial.suggest_float(self.name, self._low, self._high, log=self._log)

    def place(self, value: Scalar | None) -> Array:
        """One coordinate; the middle where the axis does not apply."""
        if value is None or self._low == self._high:
            return np.array([0.5])
        values = np.array([value, self._low, self._high], dtype=float)
        position, low, high = np.log(values) if self._log else values
        return np.array([(position - low) / (high - low)], dtype=float)


class Words(Axis):
    """Words and truth values stand apart from one another, each at a distance of 1 from any other."""

    def __init__(self, name: str, values: Sequence[Scalar]) -> None:
        self.name = name
        self._values = tuple(values)
        self.distribution = CategoricalDistribution(self._values)

    def suggest(self, trial: optuna.Trial) -> Scalar:
        """Ask for one of the choices.

        Raises:
            UserError: The study has other choices: somebody has installed or removed a topology since.
        """
        try:
            value = trial.suggest_categorical(self.name, self._values)
        except UserError:
            raise
        except ValueError as error:  # Optuna's, which takes no other choices than a study's first trial
            raise other_choices(self.name, self.distribution) from error
        assert value is not None  # it is one of the values, none of which is
        return value

    def place(self, value: Scalar | None) -> Array:
        """A coordinate for each word; all zero where the axis does not apply."""
        return np.array([0.5**0.5 * (value == word) for word in self._values])


class Coordinates:
    """Coordinates of the feasible candidates of a space.

    An axis of one of n runs of blocks is worth 1 / sqrt(n) of an axis of all blocks: blocks that all move by as much
    have moved as far.

    Attributes:
        space: The space.
        axes: The space's axes by name.
        candidates: The candidates, in the order of all indices.

    Args:
        space: The space.
        members: The candidates and their points, in the order of all indices.
    """

    def __init__(self, space: SearchSpace, members: Mapping[Candidate, Point]) -> None:
        self.space = space
        self.candidates = list(members)
        self.axes = {name: _axis(name, values) for name, values in space.axes.items()}
        self._points = list(members.values())
        self._index = {self._names(point): index for index, point in enumerate(self._points)}
        self._weights = {axis: len(axes) ** -0.5 for axes in space.runs.values() for axis in axes}

    def __len__(self) -> int:
        return len(self._points)

    @classmethod
    def of(cls, feasible: Feasible) -> "Coordinates":
        """The coordinates of all feasible candidates of an enumerated space."""
        return cls(feasible.space, {candidate: feasible.space.members[candidate] for candidate in feasible})

    def random_members(self, indices: Indices) -> Indices:
        """The candidates that are a uniform sample of all feasible ones: here, all of them."""
        return indices

    def is_new(self, index: int) -> bool:
        """Whether a candidate was added while one was being proposed."""
        return False

    @property
    def common_axes(self) -> Mapping[str, Axis]:
        """The axes that apply whatever the topology is: fields and the recipe's, not options."""
        return {name: axis for name, axis in self.axes.items() if option_of(name) is None}

    def point(self, index: int) -> Point:
        """A feasible candidate's value on each axis that applies to it."""
        return self._points[index]

    def index(self, point: Mapping[str, Scalar]) -> int | None:
        """The index of a point, None where it is not feasible or not complete."""
        return self._index.get(self._names(point))

    def matching(self, params: Mapping[str, Scalar]) -> Indices:
        """The indices of the points with these parameters."""
        fits = [params.items() <= point.items() for point in self._points]
        return np.flatnonzero(fits)

    def walk(self, value_of: Callable[[Axis], Scalar]) -> Point:
        """Make a point axis by axis; which options apply follows from the topology."""
        point: Point = {name: value_of(axis) for name, axis in self.common_axes.items()}
        return {**point, **{name: value_of(self.axes[name]) for name in self.space.options(point)}}

    def place(self, point: Mapping[str, Scalar]) -> Array:
        """Coordinates of any point, a member or not: [F]."""
        return np.concatenate([self.axis_place(name, point.get(name)) for name in self.axes] or [np.zeros(1)])

    def axis_place(self, name: str, value: Scalar | None) -> Array:
        """Coordinates of a value on one axis."""
        return np.asarray(self.axes[name].place(value) * self._weights.get(name, 1.0))

    @cached_property
    def sizes(self) -> Array:
        """The logarithm of every feasible candidate's size, from 0 to 1: [M, 1]."""
        logs = np.log([size(candidate.architecture) for candidate in self.candidates])
        return np.asarray((logs - logs.min()) / max(float(np.ptp(logs)), 1e-9))[:, None]

    @cached_property
    def places(self) -> Array:
        """Coordinates of every feasible candidate: [M, F]."""
        columns = []
        for name in self.axes:
            place_of = {value: self.axis_place(name, value) for value in (*self.space.axes[name], None)}
            columns.append(np.array([place_of[point.get(name)] for point in self._points]))
        return np.concatenate(columns or [np.zeros((len(self), 1))], axis=1)

    @cached_property
    def features(self) -> Features:
        """A model's features of every feasible candidate: numbers and the size, and words apart from them."""
        words = np.concatenate(
            [np.full(len(self.axis_place(name, None)), isinstance(axis, Words)) for name, axis in self.axes.items()]
            or [np.zeros(1, dtype=bool)]
        )
        return Features(np.concatenate([self.places[:, ~words], self.sizes], axis=1), self.places[:, words])

    def nearest(self, place: Array, among: Indices, random: np.random.Generator) -> int:
        """The index nearest to a place, one of the nearest at random."""
        distances = (self._squares - 2 * self.places @ place)[among]  # squared, less a constant
        return int(random.choice(among[distances <= distances.min() + 1e-9]))

    @cached_property
    def _squares(self) -> Array:
        return np.asarray((self.places**2).sum(axis=1))

    def _names(self, point: Mapping[str, Scalar]) -> tuple[Scalar | None, ...]:
        return tuple(map(point.get, self.axes))


def size(architecture: Architecture) -> float:
    """Roughly the weights of a transformer's blocks: what most objectives follow, whatever the task."""
    blocks = zip(*map(architecture.by_block, ("heads", "head_dim", "hidden")), strict=True)
    return float(architecture.width * sum(4 * heads * head_dim + 2 * hidden for heads, head_dim, hidden in blocks))


def _axis(name: str, values: Sequence[Scalar]) -> Axis:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return Numbers(name, sorted(numbers)) if len(numbers) == len(values) else Words(name, values)
