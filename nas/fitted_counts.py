"""Counts of many architectures from those of few: what a network costs is a polynomial in its numbers.

Architectures that differ in numbers alone are fitted together, small ones first: one is counted where those before it
do not determine it, and all others follow in exact arithmetic. The largest of these is counted as well, and one with
each value that none of those counted has. Where one is not what followed, as with a topology that reaches back over
blocks that small networks lack, the least depth is fitted by itself and the others anew; what does not follow at one
depth is all counted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod

from search_spaces.architecture import Architecture

POLYNOMIAL = {"depth": (0, 1, 2), "width": (0, 1, 2), "heads": (0, 1), "head_dim": (0, 1), "hidden": (0, 1)}
"""Number of an architecture -> its powers in a count: blocks may read all before them, and map the width to itself."""

FORMS = (POLYNOMIAL, POLYNOMIAL | {"head_dim": (-1, 0, 1)})
"""What is tried, one after the other: the width may be cut into parts of the size of a head."""

Counted = Mapping[str, int]
"""Quantity -> how much of it an architecture has."""

Count = Callable[[Architecture], Counted]


def fitted_counts(architectures: Iterable[Architecture], count: Count) -> Iterator[tuple[Architecture, Counted]]:
    """Each architecture once, with what `count` would say of it, of which few are asked."""
    alike: dict[tuple[str, str, str], list[Architecture]] = {}
    for architecture in architectures:
        alike.setdefault((architecture.topology, architecture.model, architecture.blocks), []).append(architecture)
    for group in alike.values():
        ordered = sorted(group, key=lambda one: [getattr(one, name) for name in POLYNOMIAL])
        yield from _of_alike(ordered, cache(count))


def _of_alike(group: Sequence[Architecture], count: Count) -> Iterator[tuple[Architecture, Counted]]:
    """The same of architectures that differ in numbers alone, in their order."""
    for form in FORMS:
        counts = _followed(group, count, form)
        if counts is not None:
            yield from counts.items()
            return
    least = [one for one in group if one.depth == group[0].depth]
    if len(least) < len(group):
        yield from _of_alike(least, count)
        yield from _of_alike(group[len(least) :], count)
    else:
        yield from ((one, count(one)) for one in group)


def _followed(
    group: Sequence[Architecture], count: Count, form: Mapping[str, Sequence[int]]
) -> dict[Architecture, Counted] | None:
    """The counts, by these powers; None where what was counted is not what followed."""
    varied = {name: powers for name, powers in form.items() if len({getattr(one, name) for one in group}) > 1}
    counts, followed, system = dict[Architecture, Counted](), list[Architecture](), _System()
    for one in group:
        monomials = _monomials(one, varied)
        found = system.determined(monomials)
        if found is None:
            counts[one] = count(one)
            system.add(monomials, counts[one])
        else:
            counts[one] = found
            followed.append(one)
    held_out = _held_out(group, followed, varied)
    return counts if all(counts[one] == count(one) for one in held_out) else None


def _held_out(
    group: Iterable[Architecture], followed: Sequence[Architecture], varied: Iterable[str]
) -> Iterator[Architecture]:
    """Of those that followed, each that is the first with a value, counted ones included; and the last."""
    seen = {(name, getattr(one, name)) for one in set(group).difference(followed) for name in varied}
    for one in followed:
        values = {(name, getattr(one, name)) for name in varied}
        if not values <= seen or one is followed[-1]:
            seen |= values
            yield one


def _monomials(architecture: Architecture, varied: Mapping[str, Sequence[int]]) -> list[Fraction]:
    """Their values: each number to each of its powers, multiplied out."""
    each = [[Fraction(getattr(architecture, name)) ** power for power in powers] for name, powers in varied.items()]
    return [prod(factors, start=Fraction(1)) for factors in product(*each)]


class _System:
    """What was counted as linear equations of the coefficients, each solved for one of them; grows with `add`."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, Sequence[Fraction], Mapping[str, Fraction]]] = []

    def determined(self, monomials: Sequence[Fraction]) -> Counted | None:
        """What follows where monomials have these values; None where nothing does, or no whole number."""
        left, amounts = self._reduced(monomials, {})
        if any(left) or any(amount.denominator != 1 for amount in amounts.values()):
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
