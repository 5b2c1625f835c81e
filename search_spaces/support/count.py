"""Closed-form counts of parameters and operations, which tests compare with measured counts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]

Handler = Callable[[Sequence[Shape], Sequence[Shape]], int]
"""Returns the multiply-accumulates of an operator from the shapes of its inputs and outputs.

Only tensors have shapes. Tensors of a list come one after another; numbers, flags and missing arguments are left out.
aten::lstm has input, hidden state, cell state, and then all weights and biases; its outputs are output, hidden state
and cell state. A matrix product is `lambda inputs, outputs: prod(outputs[0]) * inputs[0][-1]`.
"""

Handlers = Mapping[str, Handler | None]
"""Operator, as torch.jit traces it ("aten::lstm") -> its handler, or None if it does no matrix work."""


@dataclass(frozen=True, slots=True)
class Count:
    """The closed-form cost of a part of a network.

    Attributes:
        params: Parameters.
        macs: Multiply-accumulates of matrix work, without elementwise work.
        elementwise: Elementwise multiplications and additions by which a topology mixes its inputs, states and outputs.
            A sum of two vectors of D features counts D, a weighted sum 2 D. Norms, activations and the layers' own
            elementwise work are in no count.
    """

    params: int = 0
    macs: int = 0
    elementwise: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.params + other.params, self.macs + other.macs, self.elementwise + other.elementwise)

    def at_positions(self, positions: int) -> "Count":
        """Return the count of the same parameters applied at this many positions."""
        return Count(self.params, self.macs * positions, self.elementwise * positions)

    def copies(self, number: int) -> "Count":
        """Return the count of this many copies, each with its own parameters."""
        return Count(self.params * number, self.macs * number, self.elementwise * number)


def linear(inputs: int, outputs: int, *, bias: bool = True) -> Count:
    """Count an affine map at one position."""
    return Count(inputs * outputs + bias * outputs, inputs * outputs)


def weighted_sum(vectors: int, width: int) -> int:
    """Return the elementwise work of a weighted sum of this many vectors."""
    return (2 * vectors - 1) * width
