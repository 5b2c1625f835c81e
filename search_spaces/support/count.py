"""Closed-form counts: the arithmetic that counters are held against."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]

Handler = Callable[[Sequence[Shape], Sequence[Shape]], int]
"""The multiply-accumulates of an operator, from the shapes of its inputs and of its outputs.

Only tensors have shapes: those of a list stand one after another, and numbers, flags and what is not given are left
out. Those of aten::lstm are input, hidden and cell state and then all weights and biases; its outputs are the outputs,
hidden and cell state. A matrix product is `lambda inputs, outputs: prod(outputs[0]) * inputs[0][-1]`.
"""

Handlers = Mapping[str, Handler | None]
"""Operator, as torch.jit traces it ("aten::lstm") -> its handler, or None where it holds no matrix work."""


@dataclass(frozen=True, slots=True)
class Count:
    """What a part of a network costs, by arithmetic.

    Attributes:
        params: Parameters.
        macs: Multiply-accumulates of matrix work; elementwise work is not in it.
        elementwise: Multiplications and additions by which a topology mixes what it reads, stores and returns, where
            they are no matrix work: a sum of two vectors of D features is D, one weighted on the way 2 D. Norms,
            activations and the layers' own elementwise work are in no count.
    """

    params: int = 0
    macs: int = 0
    elementwise: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.params + other.params, self.macs + other.macs, self.elementwise + other.elementwise)

    def times(self, positions: int) -> "Count":
        """The same parameters applied at that many positions."""
        return Count(self.params, self.macs * positions, self.elementwise * positions)

    def repeat(self, number: int) -> "Count":
        """That many of it, each with parameters of its own."""
        return Count(self.params * number, self.macs * number, self.elementwise * number)


def linear(inputs: int, outputs: int, *, bias: bool = True) -> Count:
    """An affine map of one position."""
    return Count(inputs * outputs + bias * outputs, inputs * outputs)


def weighted_sum(vectors: int, width: int) -> int:
    """Elementwise work of weighting so many vectors and adding them up."""
    return (2 * vectors - 1) * width
