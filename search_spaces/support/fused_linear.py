"""Linear maps of one input side by side, of which some carry what a layer makes and others weigh it."""

from torch import nn


class FusedLinear(nn.Linear):
    """Several maps in one.

    Attributes:
        carrying: Rows of the weight by which what the layer makes is sized: not those to queries and keys, nor to what
            multiplies the half of a gated layer that is activated.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool, carrying: slice) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.carrying = carrying
