"""Closed-form counts: the arithmetic that counters are held against."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Count:
    """Parameters, and multiply-accumulates of matrix work (elementwise work is not in it)."""

    params: int = 0
    macs: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.params + other.params, self.macs + other.macs)

    def times(self, positions: int) -> "Count":
        """The same parameters applied at that many positions."""
        return Count(self.params, self.macs * positions)


def linear(inputs: int, outputs: int, *, bias: bool = True) -> Count:
    """An affine map of one position."""
    return Count(inputs * outputs + bias * outputs, inputs * outputs)
