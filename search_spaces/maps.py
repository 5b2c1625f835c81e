"""Linear maps of one input side by side, of which some carry what a layer makes and others only weigh it."""

from torch import nn


class Maps(nn.Linear):
    """Several maps in one.

    Attributes:
        carrying: Rows of the weight by whose size what the layer makes grows: not those to queries, keys and gates.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool, carrying: slice) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.carrying = carrying
