"""Counts of many architectures from those of few: what a network costs is a polynomial in its numbers.

Architectures that differ in numbers alone are fitted together, small ones first: one is counted where those before it
do not determine it, and all others follow in exact arithmetic. The largest of these is counted as well, and one with
each value that none of those counted has. Where one is not what followed, as with a topology that reaches back
over blocks that small networks lack, the least depth is fitted by itself and the others anew; what does not follow at
one depth is all counted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod

from search_spaces.architecture.architecture import Architecture

NUMBERS = ("depth", "width", "heads", "head_dim", "hidden")
"""What architectures that are fitted together may differ in."""

Form = Mapping[str, Sequence[int]]
"""A number of an architecture, or "inner" for all its heads' features -> its powers in a count."""

_BLOCKS = {"depth": (0, 1, 2), "width": (0, 1, 2), "hidden": (0, 1)}
"""Blocks may read all before them, and map the width to itself."""

FORMS: tuple[Form, ...] = (
    {**_BLOCKS, "inner": (0, 1)},
    {**_BLOCKS, "heads": (0, 1), "head_dim": (0, 1)},
    {**_BLOCKS, "heads": (0, 1), "head_dim": (-1, 0, 1)},
)
"""What is tried, one after the other: most count heads' features together; the width may be cut into heads."""

Counted = Mapping[str, int]
"""Quantity -> how much of it an architecture has."""

Count = Callable[[Architecture], Counted]


def interpolate_counts(architectures: Iterable[Architecture], count: Count) -> Iterator[tuple[Architecture, Counted]]:
    """Each architecture once, with what `count` would say of it, of which few are asked."""
    alike: dict[tuple[str, str, str], list[Architecture]] = {}
    for architecture in architectures:
        alike.setdefault((architecture.topology, architecture.model, architecture.blocks), []).append(architecture)
    for group in alike.values():
        ordered = sorted(group, key=lambda one: [getattr(one, name) for name in NUMBERS])
        yield from _of_alike(ordered, cache(count))


def _of_alike(group: Sequence[Architecture], count: Count) -> Iterator[tuple[Architecture, Counted]]:
    """The same of architectures that differ in numbers alone, in their order."""
    for form in FORMS:
        counts = _in_pieces(group, count, form)
        if counts is not None:
            yield from counts.items()
            return
    least, others = _by_depth(group)
    if others:
        yield from _of_alike(least, count)
        yield from _of_alike(others, count)
    else:
        yield from ((one, count(one)) for one in group)


def _by_depth(group: Sequence[Architecture]) -> tuple[Sequence[Architecture], Sequence[Architecture]]:
    """Those of the least depth, and the others."""
    least = sum(one.depth == group[0].depth for one in group)
    return group[:least], group[least:]


def _in_pieces(group: Sequence[Architecture], count: Count, form: Form) -> dict[Architecture, Counted] | None:
    """The counts, where they follow by these powers from some depth on, and at each one below it."""
    counts = _followed(group, count, form)
    least, others = _by_depth(group)
    if counts is not None or not others:
        return counts
    below = _followed(least, count, form)
    above = None if below is None else _in_pieces(others, count, form)
    return None if below is None or above is None else below | above


def _followed(group: Sequence[Architecture], count: Count, form: Form) -> dict[Architecture, Counted] | None:
    """The counts, by these powers; None where what was counted is not what followed."""
    varied = {name: powers for name, powers in form.items() if len({_number(one, name) for one in group}) > 1}
    system, followed = _System(), list[Architecture]()
    for one in group:
        monomials = _monomials(one, varied)
        if system.determines(monomials):
            followed.append(one)
        else:
            system.add(monomials, count(one))
    for one in _held_out(group, followed):
        if system.follows(_monomials(one, varied)) != count(one):
            return None
    counts = {one: system.follows(_monomials(one, varied)) for one in group}
    known = {one: counted for one, counted in counts.items() if counted is not None}
    return known if len(known) == len(counts) else None  # no network has a part of a parameter


def _number(architecture: Architecture, name: str) -> int:
    if name == "inner":
        return architecture.heads * architecture.head_dim
    return int(getattr(architecture, name))


def _held_out(group: Iterable[Architecture], followed: Sequence[Architecture]) -> Iterator[Architecture]:
    """Of those that followed, each that is the first with a value, counted ones included; and the last.

    So all values are tried where the others are small, and a rule of two numbers (the larger of them) is met there.
    """
    seen = {(name, getattr(one, name)) for one in set(group).difference(followed) for name in NUMBERS}
    for one in followed:
        values = {(name, getattr(one, name)) for name in NUMBERS}
        if not values <= seen or one is followed[-1]:
            seen |= values
            yield one


def _monomials(architecture: Architecture, varied: Form) -> list[Fraction]:
    """Their values: each number to each of its powers, multiplied out."""
    each = [[Fraction(_number(architecture, name)) ** power for power in powers] for name, powers in varied.items()]
    return [prod(factors, start=Fraction(1)) for factors in product(*each)]


class _System:
    """What was counted as linear equations of the coefficients, each solved for one of them; grows with `add`."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, Sequence[Fraction], Mapping[str, Fraction]]] = []

    def determines(self, monomials: Sequence[Fraction]) -> bool:
        """Whether something follows where monomials have these values."""
        return len(self._rows) == len(monomials) or not any(self._reduced(monomials, {})[0])

    def follows(self, monomials: Sequence[Fraction]) -> Counted | None:
        """What follows where monomials have these values, all of it determined; None where that is no whole number."""
        _, amounts = self._reduced(monomials, {})
        if any(amount.denominator != 1 for amount in amounts.values()):
            return None
        return {name: int(-amount) for name, amount in amounts.items()}

    def add(self, monomials: Sequence[Fraction], counted: Counted) -> None:
        """What was counted where monomials have these values; what says nothing new is passed over."""
        left, amounts = self._reduced(monomials, {name: Fraction(amount) for name, amount in counted.items()})
        pivot = next((place for place, value in enumerate(left) if value), None)
        if pivot is not None:
            row = [value / left[pivot] for value in left]
            self._rows.append((pivot, row, {name: amount / left[pivot] for name, amount in amounts.items()}))

    def _reduced(
        self, left: Sequence[Fraction], amounts: Mapping[str, Fraction]
    ) -> tuple[Sequence[Fraction], Mapping[str, Fraction]]:
        """What remains once each row has been taken off so often that nothing is left at its place."""
        for pivot, row, known in self._rows:
            if times := left[pivot]:
                left = [value - times * other for value, other in zip(left, row, strict=True)]
                amounts = {name: amounts.get(name, Fraction(0)) - times * amount for name, amount in known.items()}
        return left, amounts
