"""Networks of equal size: the width inside an architecture's feed-forward layers is changed until it costs as much."""

from collections.abc import Callable
from dataclasses import replace

from search_spaces.architecture import Architecture

MATCHED = ("params", "flops")
"""What architectures can be made equal in."""

_WIDEST = 2**24


def matched(architecture: Architecture, target: int, cost: Callable[[Architecture], int]) -> Architecture:
    """The architecture with the number of hidden features that brings its cost nearest to the target.

    `cost` must not fall as hidden features are added. Where the target is below what one hidden feature costs, or
    above what 2**24 do, that is the nearest.
    """

    def of(hidden: int) -> int:
        return cost(replace(architecture, hidden=hidden))

    low, high = 1, 2
    while high < _WIDEST and of(high) < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if of(middle) < target else (low, middle)
    return replace(architecture, hidden=min((low, high), key=lambda hidden: abs(of(hidden) - target)))
