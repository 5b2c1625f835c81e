"""Counts of many architectures from counts of few: a network's costs are polynomials in its sizes.

Architectures that differ only in NUMBERS are fitted together, small ones first. Those that earlier counts do not
determine are counted; the others are predicted in exact arithmetic. The largest predicted one is counted as a check,
and so is one with each value that no counted one has. If a prediction is wrong, the smallest depth is fitted by itself
and the others again: a topology may reach back over blocks that small networks lack. If one depth cannot be fitted,
all its architectures are counted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod

from search_spaces.architecture.architecture import Architecture

NUMBERS = ("depth", "width", "heads", "head_dim", "hidden")
"""Fields in which architectures of one fit may differ."""

Form = Mapping[str, Sequence[int]]
"""Field of an architecture, or "inner" for heads * head_dim -> its exponents in a count."""

_BLOCKS = {"depth": (0, 1, 2), "width": (0, 1, 2), "hidden": (0, 1)}
"""Blocks may read all earlier ones, and map the width to itself."""

FORMS: tuple[Form, ...] = (
    {**_BLOCKS, "inner": (0, 1)},
    {**_BLOCKS, "heads": (0, 1), "head_dim": (0, 1)},
    {**_BLOCKS, "heads": (0, 1), "head_dim": (-1, 0, 1)},
)
"""Forms in the order of attempts: most counts depend on heads * head_dim; the width may be split into heads."""

Counts = Mapping[str, int]
"""Quantity -> its amount in an architecture."""

Count = Callable[[Architecture], Counts]


def interpolate_counts(architectures: Iterable[Architecture], count: Count) -> Iterator[tuple[Architecture, Counts]]:
    """Yield each architecture once with its counts. Calls `count` for few of them."""
    alike: dict[tuple[str, str, str], list[Architecture]] = {}
    for architecture in architectures:
        alike.setdefault((architecture.topology, architecture.model, architecture.blocks), []).append(architecture)
    for group in alike.values():
        by_size = sorted(group, key=lambda member: [getattr(member, name) for name in NUMBERS])
        yield from _interpolate_group(by_size, cache(count))


def _interpolate_group(group: Sequence[Architecture], count: Count) -> Iterator[tuple[Architecture, Counts]]:
    """Yield the counts of architectures that differ only in NUMBERS, in their order."""
    for form in FORMS:
        counts = _fit_by_depth(group, count, form)
        if counts is not None:
            yield from counts.items()
            return
    least, others = _by_depth(group)
    if others:
        yield from _interpolate_group(least, count)
        yield from _interpolate_group(others, count)
    else:
        yield from ((architecture, count(architecture)) for architecture in group)


def _by_depth(group: Sequence[Architecture]) -> tuple[Sequence[Architecture], Sequence[Architecture]]:
    """Split the architectures into those of the smallest depth and the others."""
    least = sum(architecture.depth == group[0].depth for architecture in group)
    return group[:least], group[least:]


def _fit_by_depth(group: Sequence[Architecture], count: Count, form: Form) -> dict[Architecture, Counts] | None:
    """Return counts by one fit for each small depth and one for the rest; None if no such split fits."""
    counts = _fit(group, count, form)
    least, others = _by_depth(group)
    if counts is not None or not others:
        return counts
    below = _fit(least, count, form)
    above = None if below is None else _fit_by_depth(others, count, form)
    return None if below is None or above is None else below | above


def _fit(group: Sequence[Architecture], count: Count, form: Form) -> dict[Architecture, Counts] | None:
    """Return counts by a polynomial with these exponents; None if it mispredicts a count."""
    variables = {
        name: powers
        for name, powers in form.items()
        if len({_scaled_field(architecture, name) for architecture in group}) > 1
    }
    system, dependent = _LinearSystem(), list[Architecture]()
    for architecture in group:
        monomials = _monomials(architecture, variables)
        if system.determines(monomials):
            dependent.append(architecture)
        else:
            system.add(monomials, count(architecture))
    for architecture in _probes(group, dependent):
        if system.predict(_monomials(architecture, variables)) != count(architecture):
            return None
    counts = {architecture: system.predict(_monomials(architecture, variables)) for architecture in group}
    integral = {architecture: amounts for architecture, amounts in counts.items() if amounts is not None}
    return integral if len(integral) == len(counts) else None  # counts are whole numbers


def _scaled_field(architecture: Architecture, name: str) -> int:
    if name == "inner":
        return architecture.heads * architecture.head_dim
    return int(getattr(architecture, name))


def _probes(group: Iterable[Architecture], dependent: Sequence[Architecture]) -> Iterator[Architecture]:
    """Yield the dependent architectures to count as a check: the first with each new value, and the last.

    Every value is then checked where the other fields are small. This finds rules such as the larger of two fields.
    """
    values_so_far = {
        (name, getattr(architecture, name)) for architecture in set(group).difference(dependent) for name in NUMBERS
    }
    for architecture in dependent:
        values = {(name, getattr(architecture, name)) for name in NUMBERS}
        if not values <= values_so_far or architecture is dependent[-1]:
            values_so_far |= values
            yield architecture


def _monomials(architecture: Architecture, variables: Form) -> list[Fraction]:
    """Return the values of all monomials: products of powers of the fields."""
    powers_of_numbers = [
        [Fraction(_scaled_field(architecture, name)) ** power for power in powers] for name, powers in variables.items()
    ]
    return [prod(factors, start=Fraction(1)) for factors in product(*powers_of_numbers)]


class _LinearSystem:
    """Linear equations for the coefficients of counts, in eliminated form; grows with `add`."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, Sequence[Fraction], Mapping[str, Fraction]]] = []

    def determines(self, monomials: Sequence[Fraction]) -> bool:
        """Return whether the equations determine the counts at these monomials."""
        return len(self._rows) == len(monomials) or not any(self._reduce(monomials, {})[0])

    def predict(self, monomials: Sequence[Fraction]) -> Counts | None:
        """Return the counts at monomials that the equations determine; None if one is not a whole number."""
        _, amounts = self._reduce(monomials, {})
        if any(amount.denominator != 1 for amount in amounts.values()):
            return None
        return {name: int(-amount) for name, amount in amounts.items()}

    def add(self, monomials: Sequence[Fraction], counts: Counts) -> None:
        """Add an equation, the counts at these monomials, unless it follows from the others."""
        residual, amounts = self._reduce(monomials, {name: Fraction(amount) for name, amount in counts.items()})
        pivot = next((place for place, value in enumerate(residual) if value), None)
        if pivot is not None:
            row = [value / residual[pivot] for value in residual]
            self._rows.append((pivot, row, {name: amount / residual[pivot] for name, amount in amounts.items()}))

    def _reduce(
        self, residual: Sequence[Fraction], amounts: Mapping[str, Fraction]
    ) -> tuple[Sequence[Fraction], Mapping[str, Fraction]]:
        """Return the residual and amounts after elimination by all rows."""
        for pivot, row, row_amounts in self._rows:
            if times := residual[pivot]:
                residual = [value - times * other for value, other in zip(residual, row, strict=True)]
                amounts = {
                    name: amounts.get(name, Fraction(0)) - times * amount for name, amount in row_amounts.items()
                }
        return residual, amounts
