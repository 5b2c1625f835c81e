"""The standard error of whatever is worked out from examples: from leaving out a part of them at a time."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

GROUPS = 20
"""Parts of the examples, each left out once, that the standard error of a metric is made from."""


def jackknife(computed: Callable[[Any], Mapping[str, float]], examples: int) -> dict[str, float]:
    """Metrics of all examples, and the standard error that leaving out each of GROUPS parts of them shows.

    `computed` is given which examples are meant. The parts are of every GROUPS-th example: whatever the metric is, a
    share or an F1, its error is estimated to about a sixth of itself.
    """
    every = np.arange(examples)
    found = dict(computed(every))
    groups = min(GROUPS, examples)
    if groups < 2:
        return found
    without = [computed(every[every % groups != group]) for group in range(groups)]
    for name in list(found):
        values = np.array([one[name] for one in without])
        error = float(np.sqrt((groups - 1) * values.var()))
        if np.isfinite(error):
            found[f"{name}_se"] = error
    return found
