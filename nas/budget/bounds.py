"""Hard budgets: bounds on the costs of a network, and the candidates of a space within them.

A budget is text such as "params<=100k", "20M<=params<=24M" or "params<=100k,flops<=50M". Every architecture of the
space is counted before anything is trained.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil, floor, inf

from nas.budget.objectives import COUNT_COSTS, PROFILE_COSTS
from results.records.human_numbers import SIZES
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Candidate, SearchSpace
from search_spaces.support.errors import UserError, unknown_name_error

QUANTITIES = (*COUNT_COSTS, *PROFILE_COSTS)
"""Quantities that a budget can bound."""

Counts = Mapping[str, float]
"""Quantity -> its amount in one architecture."""

_OPERATOR = re.compile(r"\s*(<=|>=|<|>)\s*")
_NUMBER = re.compile(r"(.*?)\s*([kKMGT]?)")
_ABSURD = Decimal(10) ** 24
_MIRROR = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}


@dataclass(frozen=True, slots=True)
class Range:
    """The range of a bounded quantity, both ends included; integers for counts."""

    low: float = 0
    high: float = inf

    def __and__(self, other: "Range") -> "Range":
        return Range(max(self.low, other.low), min(self.high, other.high))

    def __contains__(self, count: float) -> bool:
        return self.low <= count <= self.high

    def excess(self, count: float) -> float:
        """Return by what fraction of the violated end a count is outside the range; 0 inside."""
        return max(0.0, count / max(self.high, 1) - 1, 1 - count / max(self.low, 1))


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds that every trained network keeps. Their text is canonical, and empty without bounds.

    Attributes:
        bounds: Quantity -> its range, in the order of QUANTITIES.
    """

    bounds: Mapping[str, Range] = field(default_factory=dict)

    @property
    def count_budget(self) -> "Budget":
        """The bounds on counts, which every member of a space keeps."""
        return self._only(COUNT_COSTS)

    @property
    def profile_budget(self) -> "Budget":
        """The bounds on profile columns, which are checked after the network is built."""
        return self._only(PROFILE_COSTS)

    def allows(self, counts: Counts) -> bool:
        """Return whether every bounded quantity is within its range."""
        return all(counts[quantity] in bound for quantity, bound in self.bounds.items())

    def _only(self, quantities: Sequence[str]) -> "Budget":
        return Budget({quantity: bound for quantity, bound in self.bounds.items() if quantity in quantities})

    def __str__(self) -> str:
        return ",".join(_text(quantity, bound) for quantity, bound in self.bounds.items())


NO_BUDGET = Budget()


@dataclass(frozen=True)
class Feasible:
    """The candidates of a space within a budget, in the space's order.

    Attributes:
        space: Their space.
        candidates: At least one; all or none of an architecture, since a recipe changes no count.
    """

    space: SearchSpace
    candidates: tuple[Candidate, ...]

    @property
    def number(self) -> int:
        """Number of candidates."""
        return len(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)


def parse_budget(texts: Iterable[str]) -> Budget:
    """Parse bounds, one or several (separated by commas) in each text, into one budget.

    A bound is QUANTITY<=NUMBER or NUMBER<=QUANTITY<=NUMBER with any of <=, <, >=, >. A number may be written
    100k, 1.5M, 2G, 1T or 1e6.

    Raises:
        UserError: A text is not a bound, a quantity is unknown, a number is malformed, or bounds contradict each other.
    """
    ranges: dict[str, Range] = {}
    for bound in (part.strip() for text in texts for part in text.split(",") if part.strip()):
        for quantity, operator, number in _comparisons(bound):
            ranges[quantity] = ranges.get(quantity, Range()) & _range(quantity, operator, number)
    for quantity, bound_range in ranges.items():
        if bound_range.low > bound_range.high:
            bound = _text(quantity, bound_range)
            message = f"no number satisfies {bound}: the lower bound exceeds the upper one."
            raise UserError("infeasible", message, option="--budget", value=bound, quantity=quantity)
    return Budget({quantity: ranges[quantity] for quantity in QUANTITIES if quantity in ranges})


def feasible(space: SearchSpace, counts: Callable[[Architecture], Counts], budget: Budget) -> Feasible:
    """Return the candidates of a space whose counts are within a budget.

    Calls `counts` only if the budget bounds counts, once for each architecture.

    Raises:
        UserError: No architecture is within the budget. The message names the nearest one and its costs.
    """
    budget = budget.count_budget
    if not budget.bounds:
        return Feasible(space, tuple(space))
    counts_of = {architecture: counts(architecture) for architecture in space.architectures}
    inside = {architecture for architecture, amounts in counts_of.items() if budget.allows(amounts)}
    candidates = tuple(candidate for candidate in space if candidate.architecture in inside)
    if candidates:
        return Feasible(space, candidates)

    def excess(architecture: Architecture) -> float:
        return sum(bound.excess(counts_of[architecture][quantity]) for quantity, bound in budget.bounds.items())

    nearest = min(counts_of, key=excess)
    costs = ", ".join(f"{quantity}={counts_of[nearest][quantity]}" for quantity in budget.bounds)
    only_cap = len(budget.bounds) == 1 and all(bound.low == 0 for bound in budget.bounds.values())
    raise UserError(
        "infeasible",
        f"no architecture of space {space.name!r} satisfies {budget}. The {'smallest' if only_cap else 'nearest'} "
        f"has {costs} ({nearest}). Change the bound, or the base architecture with --arch.",
        space=space.name,
        budget=str(budget),
        architecture=str(nearest),
        costs=costs,
    )


def _comparisons(bound: str) -> Sequence[tuple[str, str, str]]:
    """ "a<=params<b" -> (params, >=, a), (params, <, b)."""
    pieces = _OPERATOR.split(bound)
    match pieces:
        case [left, operator, right] if _names_quantity(left):
            comparisons = [(left, operator, right)]
        case [left, operator, right]:
            comparisons = [(right, _MIRROR[operator], left)]
        case [left, first, quantity, second, right] if first[0] == second[0]:
            comparisons = [(quantity, _MIRROR[first], left), (quantity, second, right)]
        case _:
            message = f"--budget must be QUANTITY<=NUMBER or NUMBER<=QUANTITY<=NUMBER, got {bound!r}."
            raise UserError("bad-syntax", message, option="--budget", value=bound)
    for quantity, _, _ in comparisons:
        if quantity not in QUANTITIES:
            raise unknown_name_error("budget quantity", quantity, QUANTITIES)
    return comparisons


def _names_quantity(text: str) -> bool:
    return text[:1].isalpha()


def _range(quantity: str, operator: str, text: str) -> Range:
    """Return the integers for which a comparison holds; for profile columns all numbers, including the end."""
    number = _number(text)
    if quantity in PROFILE_COSTS:
        return Range(high=float(number)) if operator[0] == "<" else Range(low=float(number))
    match operator:
        case "<=":
            return Range(high=floor(number))
        case "<":
            return Range(high=ceil(number) - 1)
        case ">=":
            return Range(low=ceil(number))
        case _:
            return Range(low=floor(number) + 1)


def _number(text: str) -> Decimal:
    match = _NUMBER.fullmatch(text)
    with suppress(ArithmeticError):
        number = Decimal(match[1] if match else "") * SIZES.get(match[2] if match else "", 1)
        if number.is_finite() and 0 <= number < _ABSURD:
            return number
    message = f"a bound must be a number such as 100k, 1.5M, 2G, 1T or 1e6, got {text!r}."
    raise UserError("bad-syntax", message, option="--budget", value=text)


def _text(quantity: str, bound: Range) -> str:
    if bound.high == inf:
        return f"{quantity}>={bound.low}"
    return f"{quantity}<={bound.high}" if bound.low == 0 else f"{bound.low}<={quantity}<={bound.high}"
