"""Multiply-accumulates of an einsum, from its equation and shapes.

fvcore's own handler parses NumPy's printed count, which has four digits.
"""

import math
from collections.abc import Sequence

from search_spaces.support.count import Shape

Index = str | int
"""A letter, or for an axis of "..." its position from the right."""


def einsum_macs(equation: str, shapes: Sequence[Shape], path: Sequence[int] | None = None) -> int:
    """Return the multiply-accumulates of an einsum as torch contracts it: pair by pair, as batches of matrix products.

    Two steps hold no MACs: an index of one operand alone is summed first, and a pair without a summed index is
    multiplied elementwise. An axis of length 1 counts as any other, as in `aten::matmul`.

    Args:
        equation: As for `torch.einsum`: letters and "...", with or without "->".
        shapes: Shapes of the operands.
        path: Positions of each pair among the remaining operands; a product is appended at the end. None contracts
            from left to right.
    """
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = [_indices(term, len(shape)) for term, shape in zip(inputs.split(","), shapes, strict=True)]
    sizes: dict[Index, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for index, size in zip(term, shape, strict=True):
            sizes[index] = max(size, sizes.get(index, 1))
    occurrences = [index for term in terms for index in term]
    ellipsis_axes: set[Index] = {index for index in sizes if isinstance(index, int)}
    output_indices: set[Index] = {*output} | (ellipsis_axes if "..." in output else set())
    if not arrow:
        output_indices = ellipsis_axes | {index for index in sizes if occurrences.count(index) == 1}
    # A broadcast axis is not an axis of the operand.
    operands = [
        {index for index, size in zip(term, shape, strict=True) if size == sizes[index]}
        for term, shape in zip(terms, shapes, strict=True)
    ]
    macs = 0
    positions = iter(path or ())
    while len(operands) > 1:
        # From left to right, a product is the left operand of the next pair.
        pair = (next(positions), next(positions)) if path else (0, 1)
        first, second = (operands[position] for position in pair)
        rest = [term for position, term in enumerate(operands) if position not in pair]
        live_indices = output_indices.union(*rest)
        if (first & second) - live_indices:
            macs += math.prod(sizes[index] for index in (first & second) | ((first | second) & live_indices))
        product = (first | second) & live_indices
        operands = [*rest, product] if path else [product, *rest]
    return macs


def _indices(term: str, axes: int) -> list[Index]:
    before, dots, after = term.partition("...")
    return [*before, *reversed(range(axes - len(before) - len(after))), *after] if dots else [*term]
