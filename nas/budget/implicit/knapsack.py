"""The multiple-choice knapsack, counted and sampled exactly: one option of each part, with bounds on the summed costs.

Sums and the numbers of choices that reach them are integers of any size: nothing is rounded. Run time depends on the
number of distinct sums. Parts of one kind have few, so each kind is summed first. The last two groups are never
joined: for each sum of the outer group, the fitting sums of the inner group are looked up.

Shapes: O = sums of the outer group, I = of the inner one, Q = quantities, L = limbs of a big number.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from search_spaces.support.errors import UserError

Cost = tuple[int, ...]
"""The amount of each bounded quantity."""

Part = Sequence[Cost]
"""The cost of each option."""

Choice = dict[int, int]
"""Index of a part -> index of its option."""

MAX_PAIRS = 100_000_000
"""Largest number of pairs of sums that are compared, which takes seconds."""

_CHUNK = 2**22

Amounts = NDArray[np.int64]


@dataclass(frozen=True)
class Sums(ABC):
    """The sums that a group of parts can have.

    Attributes:
        ways: Sum, with its quantities as the digits of one number -> number of choices that have it.
    """

    ways: Mapping[int, int]

    @abstractmethod
    def choice(self, total: int, rank: int) -> Choice:
        """Return the choice at index `rank` among those that have a sum."""


@dataclass(frozen=True)
class NoParts(Sums):
    """The empty group of parts."""

    def choice(self, total: int, rank: int) -> Choice:
        """Return the empty choice."""
        return {}


@dataclass(frozen=True)
class Leaf(Sums):
    """A group of one part.

    Attributes:
        part: Its index.
        options: Cost -> the options that have it.
    """

    part: int
    options: Mapping[int, Sequence[int]]

    def choice(self, total: int, rank: int) -> Choice:
        return {self.part: self.options[total][rank]}


@dataclass(frozen=True)
class Pair(Sums):
    """Two joined groups of parts, the second with fewer sums."""

    many: Sums
    few: Sums

    def choice(self, total: int, rank: int) -> Choice:
        """Return a choice. They are ordered by the second group's share of the sum, then by each group's order."""
        for share, few in self.few.ways.items():
            many = self.many.ways.get(total - share, 0)
            if rank < few * many:
                return self.many.choice(total - share, rank // few) | self.few.choice(share, rank % few)
            rank -= few * many
        raise AssertionError("a sum's ways are those of its shares")


class Knapsack:
    """The choices of one option of each part whose sums are within their ranges, both ends included.

    Args:
        kinds: Groups of parts with similar costs. A part's index counts through all groups.
        low: Lower bound of each quantity.
        high: Upper bound of each quantity.

    Attributes:
        least: Smallest sum of each quantity by itself, over all choices.
        most: Largest sum of each quantity by itself.

    Raises:
        UserError: There are too many distinct sums.
    """

    def __init__(self, kinds: Sequence[Sequence[Part]], low: Cost, high: Cost) -> None:
        parts = [part for kind in kinds for part in kind]
        quantities = range(len(low))
        self.least = tuple(sum(min(cost[q] for cost in part) for part in parts) for q in quantities)
        self.most = tuple(sum(max(cost[q] for cost in part) for part in parts) for q in quantities)
        # Sums are relative to the least one, and bounds are clipped to the possible range.
        self._spans = [most - least for least, most in zip(self.least, self.most, strict=True)]
        self._low = [max(0, end - least) for end, least in zip(low, self.least, strict=True)]
        self._high = [min(end - self.least[q], self._spans[q]) for q, end in enumerate(high)]
        self._digits = list(accumulate((span + 1 for span in self._spans), lambda a, b: a * b, initial=1))
        fits = all(low <= high for low, high in zip(self._low, self._high, strict=True))
        self._outer, self._inner = self._groups(kinds) if fits else (NoParts({}), NoParts({}))
        self._outer_sums, self._inner_sums = sorted(self._outer.ways), sorted(self._inner.ways)

    @property
    def number(self) -> int:
        """Number of choices that fit."""
        return self._cumulative[-1] if self._cumulative else 0

    def draw(self, random: np.random.Generator) -> list[int]:
        """Return the option of each part for a choice that fits, drawn uniformly. There must be one."""
        rank = random_below(self.number, random)
        position = bisect_right(self._cumulative, rank)
        outer = self._outer_sums[position]
        rank -= self._cumulative[position - 1] if position else 0
        rank, outer_rank = divmod(rank, self._outer.ways[outer])
        for index in self._inner_fits(position):
            inner = self._inner_sums[index]
            if rank < self._inner.ways[inner]:
                choice = self._outer.choice(outer, outer_rank) | self._inner.choice(inner, rank)
                return [choice[part] for part in range(len(choice))]
            rank -= self._inner.ways[inner]
        raise AssertionError("what fits is what was counted")

    def _groups(self, kinds: Sequence[Sequence[Part]]) -> tuple[Sums, Sums]:
        """Join all parts into an outer and an inner group. The inner one is monotone if either is."""
        numbers = iter(range(sum(map(len, kinds))))
        groups = [reduce(_pair, [self._leaf(next(numbers), part) for part in kind]) for kind in kinds if kind]
        groups += [NoParts({0: 1})] * (2 - len(groups))
        while len(groups) > 2:
            groups.sort(key=lambda sums: len(sums.ways))
            groups[:2] = [_pair(groups[1], groups[0])]
        inner, outer = sorted(groups, key=lambda sums: len(sums.ways))
        inner_grows, outer_grows = (_is_monotone(self._amounts(sorted(sums.ways))) for sums in (inner, outer))
        return (inner, outer) if outer_grows and not inner_grows else (outer, inner)

    def _leaf(self, number: int, part: Part) -> Sums:
        least = [min(cost[q] for cost in part) for q in range(len(self.least))]
        options: dict[int, list[int]] = {}
        for index, cost in enumerate(part):
            above = (amount - floor for amount, floor in zip(cost, least, strict=True))
            total = sum(amount * digit for amount, digit in zip(above, self._digits, strict=False))
            options.setdefault(total, []).append(index)
        return Leaf({total: len(indices) for total, indices in options.items()}, number, options)

    @cached_property
    def _cumulative(self) -> list[int]:
        """Cumulative number of choices over the outer group's sums."""
        if not self._outer_sums:
            return []
        ways = self._count_monotone() if _is_monotone(self._inner_amounts) else self._count_pairs()
        return list(accumulate(self._outer.ways[s] * n for s, n in zip(self._outer_sums, ways, strict=True)))

    def _count_monotone(self) -> Iterator[int]:
        """Yield for each outer sum the inner choices that fit, if all quantities grow along the inner sums."""
        cumulative = list(accumulate((self._inner.ways[inner] for inner in self._inner_sums), initial=0))
        outer, inner = self._outer_amounts, self._inner_amounts
        start, end = np.zeros(len(outer), dtype=np.intp), np.full(len(outer), len(inner))
        for q, (low, high) in enumerate(zip(self._low, self._high, strict=True)):
            start = np.maximum(start, np.searchsorted(inner[:, q], low - outer[:, q], "left"))
            end = np.minimum(end, np.searchsorted(inner[:, q], high - outer[:, q], "right"))
        return (cumulative[max(b, a)] - cumulative[a] for a, b in zip(start.tolist(), end.tolist(), strict=True))

    def _count_pairs(self) -> Iterator[int]:
        """Yield for each outer sum the inner choices that fit, by comparing every pair of sums."""
        outer, inner = self._outer_amounts, self._inner_amounts
        if len(outer) * len(inner) > MAX_PAIRS:
            raise _too_many(len(outer) * len(inner))
        bits = 52 - len(inner).bit_length()  # then a sum of limbs is exact in double precision
        shifts = range(0, max(self._inner.ways.values()).bit_length(), bits)
        ways = [[self._inner.ways[s] >> shift & (1 << bits) - 1 for shift in shifts] for s in self._inner_sums]
        limbs, rows = np.array(ways, dtype=float), max(1, _CHUNK // len(inner))  # [I, L]
        for first in range(0, len(outer), rows):
            total = outer[first : first + rows, None] + inner  # [., I, Q]
            inside = ((total >= self._low) & (total <= self._high)).all(axis=2)
            for row in inside.astype(float) @ limbs:
                yield sum(int(limb) << shift for limb, shift in zip(row, shifts, strict=True))

    def _inner_fits(self, position: int) -> list[int]:
        """Return the indices of the inner sums that fit with an outer sum."""
        total = self._outer_amounts[position] + self._inner_amounts
        inside = ((total >= self._low) & (total <= self._high)).all(axis=1)
        indices: list[int] = np.flatnonzero(inside).tolist()
        return indices

    @cached_property
    def _outer_amounts(self) -> Amounts:
        return self._amounts(self._outer_sums)

    @cached_property
    def _inner_amounts(self) -> Amounts:
        return self._amounts(self._inner_sums)

    def _amounts(self, sums: Sequence[int]) -> Amounts:
        """Return the quantities of sums, [., Q]."""
        digits = list(zip(self._digits, self._spans, strict=False))
        return np.array([[s // digit % (span + 1) for digit, span in digits] for s in sums], dtype=np.int64)


def random_below(end: int, random: np.random.Generator) -> int:
    """Return a uniform random integer below `end`, which may be of any size."""
    bits = (end - 1).bit_length()
    if bits == 0:
        return 0
    while True:
        number = int.from_bytes(random.bytes((bits + 7) // 8), "little") & (1 << bits) - 1
        if number < end:
            return number


def _pair(a: Sums, b: Sums) -> Sums:
    many, few = (a, b) if len(a.ways) >= len(b.ways) else (b, a)
    if len(many.ways) * len(few.ways) > MAX_PAIRS // 10:
        raise _too_many(len(many.ways) * len(few.ways))
    ways: dict[int, int] = {}
    for total, ways_of_many in many.ways.items():
        for share, ways_of_few in few.ways.items():
            ways[total + share] = ways.get(total + share, 0) + ways_of_many * ways_of_few
    return Pair(ways, many, few)


def _is_monotone(amounts: Amounts) -> bool:
    """Return whether no quantity decreases from one sum to the next."""
    return bool((np.diff(amounts, axis=0) >= 0).all())


def _too_many(pairs: int) -> UserError:
    return UserError(
        "too-large",
        f"the space has too many different costs to count under this budget: {pairs:.1e} pairs of sums, at most "
        f"{MAX_PAIRS:.0e} are allowed. Bound one quantity, or give fewer values with --axis.",
        pairs=pairs,
        most=MAX_PAIRS,
    )
