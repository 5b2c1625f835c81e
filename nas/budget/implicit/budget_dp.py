"""Dynamic programming over the members within a budget of a space too large to enumerate: count, sample, search.

Counts are exact and samples uniform, by `nas.budget.implicit.knapsack` over the parts of
`nas.budget.implicit.decomposition`. BudgetDP checks on random members that costs are sums over these parts.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from math import inf, prod

import numpy as np

from nas.budget.bounds import Budget, Counts, Range
from nas.budget.implicit.block_costs import add_costs
from nas.budget.implicit.decomposition import Slice, slices_of
from nas.budget.implicit.knapsack import Cost, Knapsack, random_below
from nas.budget.implicit.nearest_sum import nearest_choice
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.axis_names import is_recipe, option_of
from search_spaces.spaces.space import Candidate, Point, SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Scalar
from search_spaces.topologies.registry import incompatibility_reason

Distance = Callable[[str, Scalar], float]
"""Maps an axis and a value to the distance from the target value."""

CHECKS = 24
"""Number of random members whose counted costs are compared with the sums."""

_NO_BOUND = 10**60
_TRIES = 50


class BudgetDP:
    """The members of a space within a budget, not enumerated.

    Attributes:
        space: Their space.
        number: Number of members within the budget, at least one.
        space_size: Number of members of the space.

    Args:
        space: Any space; made for those with axes of single blocks.
        counts: Returns an architecture's counts; called only if the budget bounds counts.
        budget: Its bounds on counts are kept; other bounds are ignored.

    Raises:
        UserError: No member is within the budget, costs are not sums over blocks, or there are too many distinct costs.
    """

    def __init__(self, space: SearchSpace, counts: Callable[[Architecture], Counts], budget: Budget) -> None:
        self.space, self._budget, self._counts = space, budget.count_budget, counts
        bounds = self._budget.bounds.values() or (Range(),)  # without bounds, one quantity that is 0 everywhere
        self._low: Cost = tuple(int(bound.low) for bound in bounds)
        self._high: Cost = tuple(_NO_BOUND if bound.high == inf else int(bound.high) for bound in bounds)
        slices = list(slices_of(space, self._cost))
        self._check(slices)
        self._slices = [(slice_, knapsack) for slice_ in slices if (knapsack := self._knapsack(slice_)).number]
        if not self._slices:
            raise self._infeasible(slices)
        self._cumulative = list(accumulate(knapsack.number for _, knapsack in self._slices))
        self._recipe = {axis: values for axis, values in space.axes.items() if is_recipe(axis)}
        recipes = prod(map(len, self._recipe.values()))
        self.number: int = self._cumulative[-1] * recipes
        self.space_size: int = sum(prod(len(part.costs) for part in slice_.parts) for slice_ in slices) * recipes
        self._shared_axes = [axis for axis in space.axes if axis.isidentifier() or option_of(axis) is not None]
        self._slices_by_values: dict[tuple[Scalar | None, ...], list[Slice]] = {}
        for slice_, _ in self._slices:
            self._slices_by_values.setdefault(self._shared_values(slice_.shared_values), []).append(slice_)

    def __contains__(self, candidate: Candidate) -> bool:
        point = self.space.point(candidate)
        return point is not None and self.allows(point)

    def allows(self, point: Point) -> bool:
        """Return whether a point is a member within the budget."""
        if any(point.get(axis) not in values for axis, values in self._recipe.items()):
            return False
        for slice_ in self._slices_by_values.get(self._shared_values(point), ()):
            cost = slice_.cost_of(point)
            if cost is not None:
                return all(low <= amount <= high for low, amount, high in zip(self._low, cost, self._high, strict=True))
        return False

    def draw(self, random: np.random.Generator) -> Point:
        """Return a member within the budget, drawn uniformly."""
        slice_, knapsack = self._slices[bisect_right(self._cumulative, random_below(self._cumulative[-1], random))]
        return self._point(slice_, knapsack.draw(random)) | {
            axis: values[int(random.integers(len(values)))] for axis, values in self._recipe.items()
        }

    def mutate(self, point: Point, random: np.random.Generator) -> Point | None:
        """Return a member within the budget that differs in one or two values; None after too many attempts.

        One axis gets another value. A second axis gets a value with which the member is within the budget.
        """
        axes = list(point)
        for _ in range(_TRIES):
            first, second = (axes[int(i)] for i in random.integers(len(axes), size=2))
            alternatives = [value for value in self.space.axes[first] if value != point[first]]
            if not alternatives:
                continue
            mutant = point | {first: alternatives[int(random.integers(len(alternatives)))]}
            values = self.space.axes[second] if second != first else (mutant[first],)
            inside = [neighbour for value in values if self.allows(neighbour := mutant | {second: value})]
            if inside:
                return inside[int(random.integers(len(inside)))]
        return None

    def nearest(self, distance: Distance) -> Point | None:
        """Return the member with the smallest sum of distances over the axes; None if none is found.

        Exact if the parts of a slice have few distinct sums. If they have many, `nas.budget.implicit.nearest_sum`
        groups them: the member is then within the budget, but may not be the nearest.
        """
        best: tuple[float, Point] | None = None
        nearest_first = sorted(self._slices, key=lambda pair: _distance_of(pair[0].shared_values, distance))
        for slice_, _ in nearest_first:
            offset = _distance_of(slice_.shared_values, distance)
            if best is not None and offset >= best[0]:
                break
            low, high = (add_costs(ends, slice_.cost, -1) for ends in (self._low, self._high))
            parts = [([_distance_of(point, distance) for point in part.points], part.costs) for part in slice_.parts]
            choice = nearest_choice(parts, low, high)
            if choice is not None and (best is None or offset + choice[0] < best[0]):
                best = offset + choice[0], self._point(slice_, choice[1])
        recipe = {axis: min(values, key=lambda value: distance(axis, value)) for axis, values in self._recipe.items()}
        return None if best is None else best[1] | recipe

    def _shared_values(self, point: Point) -> tuple[Scalar | None, ...]:
        """Return the point's values on the axes that all blocks share; None for axes that do not apply."""
        return tuple(map(point.get, self._shared_axes))

    def _cost(self, architecture: Architecture) -> Cost:
        if not self._budget.bounds:
            return (0,)
        counts = self._counts(architecture)
        return tuple(int(counts[quantity]) for quantity in self._budget.bounds)

    def _knapsack(self, slice_: Slice) -> Knapsack:
        kinds = [[part.costs for part in kind] for kind in slice_.kinds]
        return Knapsack(kinds, *(add_costs(ends, slice_.cost, -1) for ends in (self._low, self._high)))

    def _point(self, slice_: Slice, choice: list[int]) -> Point:
        point = dict(slice_.shared_values)
        for part, option in zip(slice_.parts, choice, strict=True):
            point |= part.points[option]
        return point

    def _check(self, slices: list[Slice]) -> None:
        """Raise UserError if random members do not cost the sum of their parts."""
        random = np.random.default_rng(0)
        with_parts = [slice_ for slice_ in slices if slice_.parts]
        for number in range(CHECKS if with_parts else 0):
            slice_ = with_parts[int(random.integers(len(with_parts)))]
            # The offset ensures that each topology and each number appears in some members.
            choice = [(number + int(random.integers(len(part.costs)))) % len(part.costs) for part in slice_.parts]
            point = self._point(slice_, choice)
            architecture = self.space.candidate(point).architecture
            reason = incompatibility_reason(architecture)
            if reason is not None or self._cost(architecture) != slice_.cost_of(point):
                total = slice_.cost_of(point) or ()
                why = reason or f"it has {self._text(self._cost(architecture))}, not {self._text(total)}"
                raise UserError(
                    "unsupported",
                    f"space {self.space.name!r} is too large to list, and its costs do not add up over blocks. For "
                    f"{architecture}: {why}. Use topologies whose costs add up, or fewer values, with --axis.",
                    space=self.space.name,
                    architecture=str(architecture),
                )

    def _infeasible(self, slices: list[Slice]) -> UserError:
        """Return the error that no member is within the budget, with the range of each quantity."""
        knapsacks = [(slice_, self._knapsack(slice_)) for slice_ in slices]
        ranges = {}
        for q, quantity in enumerate(self._budget.bounds):
            least = min((slice_.cost[q] + knapsack.least[q] for slice_, knapsack in knapsacks), default=0)
            most = max((slice_.cost[q] + knapsack.most[q] for slice_, knapsack in knapsacks), default=0)
            ranges[quantity] = least, most
        extent = ", ".join(f"{quantity} from {least} to {most}" for quantity, (least, most) in ranges.items())
        return UserError(
            "infeasible",
            f"no architecture of space {self.space.name!r} satisfies {self._budget}. The space has {extent}. "
            "Change the bound, or the base architecture with --arch.",
            space=self.space.name,
            budget=str(self._budget),
            ranges=tuple((quantity, *ends) for quantity, ends in ranges.items()),
        )

    def _text(self, cost: Cost) -> str:
        return ", ".join(f"{quantity}={amount}" for quantity, amount in zip(self._budget.bounds, cost, strict=False))


def _distance_of(point: Mapping[str, Scalar], distance: Distance) -> float:
    return sum(distance(axis, value) for axis, value in point.items())
