"""The standard error of whatever is worked out from examples: from leaving out a part of them at a time.

Shapes: E = examples.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUPS = 20
"""Parts of the examples, each left out once, that the standard error of a metric is made from."""


def jackknife(metrics_of: Callable[[Any], Mapping[str, float]], clusters: NDArray[Any]) -> dict[str, float]:
    """Metrics of all examples, and the standard error that leaving out each of GROUPS parts of them shows.

    `metrics_of` takes the numbers of examples. A part is every GROUPS-th cluster: whatever the
    metric is, a share or an F1, its error is estimated to about a sixth of itself, and worse where clusters are few.

    Args:
        metrics_of: The metrics of some examples.
        clusters: What each example is of, [E]: those of one document have much in common, and are left out together.
    """
    every = np.arange(len(clusters))
    metrics = dict(metrics_of(every))
    unique, number = np.unique(clusters, return_inverse=True)
    groups = min(GROUPS, len(unique))
    if groups < 2:
        return metrics
    without = [metrics_of(every[number % groups != group]) for group in range(groups)]
    for name in list(metrics):
        values = np.array([part[name] for part in without])
        error = float(np.sqrt((groups - 1) * values.var()))
        if np.isfinite(error):
            metrics[f"{name}_se"] = error
    return metrics
