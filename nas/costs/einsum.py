"""The multiply-accumulates of an einsum, by its equation and shapes.

fvcore's own handler reads the number that NumPy prints, which has four digits.
"""

import math
from collections.abc import Sequence

from search_spaces.support.count import Shape

Index = str | int
"""A letter, or the place, from the right, of an axis that "..." stands for."""


def einsum_macs(equation: str, shapes: Sequence[Shape], path: Sequence[int] | None = None) -> int:
    """What torch makes of it: pair by pair, each a batch of matrix products over the indices that both have and lose.

    An index that one operand alone has is summed before, and a pair that loses none is multiplied elementwise: neither
    is a MAC. An axis of length 1 counts as any other does, as in `aten::matmul`.

    Args:
        equation: As `torch.einsum` takes it: letters and "...", with or without "->".
        shapes: Of the operands.
        path: Places of the pairs among the operands that are left, one after another, what a pair makes being the last
            of them; from left to right where there is none.
    """
    given, arrow, asked = equation.replace(" ", "").partition("->")
    terms = [_indices(term, len(shape)) for term, shape in zip(given.split(","), shapes, strict=True)]
    sizes: dict[Index, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for index, size in zip(term, shape, strict=True):
            sizes[index] = max(size, sizes.get(index, 1))
    listed = [index for term in terms for index in term]
    spread: set[Index] = {index for index in sizes if isinstance(index, int)}
    kept: set[Index] = {*asked} | (spread if "..." in asked else set())
    if not arrow:
        kept = spread | {index for index in sizes if listed.count(index) == 1}
    # An axis that is stretched is no axis of what is multiplied.
    left = [
        {index for index, size in zip(term, shape, strict=True) if size == sizes[index]}
        for term, shape in zip(terms, shapes, strict=True)
    ]
    macs = 0
    places = iter(path or ())
    while len(left) > 1:
        # What torch makes from left to right is the left one of the next pair.
        pair = (next(places), next(places)) if path else (0, 1)
        first, second = (left[place] for place in pair)
        others = [term for place, term in enumerate(left) if place not in pair]
        wanted = kept.union(*others)
        if (first & second) - wanted:
            macs += math.prod(sizes[index] for index in (first & second) | ((first | second) & wanted))
        made = (first | second) & wanted
        left = [*others, made] if path else [made, *others]
    return macs


def _indices(term: str, axes: int) -> list[Index]:
    before, dots, after = term.partition("...")
    return [*before, *reversed(range(axes - len(before) - len(after))), *after] if dots else [*term]
