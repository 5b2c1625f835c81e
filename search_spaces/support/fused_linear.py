"""Fused linear maps of one input, such as queries, keys and values."""

from torch import nn


class FusedLinear(nn.Linear):
    """Several linear maps in one.

    Attributes:
        output_rows: Rows of the weight that scale the layer's output. Excluded are queries, keys, and the half of a
            gated layer that is not activated.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool, output_rows: slice) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.output_rows = output_rows
