"""How far what is drawn is from what is real, in the features of a network that knows such pictures.

Shapes: N = drawn, M = real, K = features.
"""

from collections.abc import Mapping

import numpy as np
from scipy.spatial import cKDTree

_NEIGHBOURS = 3
_RESAMPLED = 100
Features = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def distances(drawn: Features, real: Features) -> Mapping[str, float]:
    """Frechet distance, precision and recall of what is drawn [N, K] against what is real [M, K], with their errors.

    The standard error of the distance is the deviation over draws of as many from both sets, each with replacement;
    precision and recall are shares of pictures, whose errors resampling these would give as well.
    """
    generator = np.random.RandomState(0)
    again = [frechet(_resampled(drawn, generator), _resampled(real, generator)) for _ in range(_RESAMPLED)]
    precise, recalled = inside(drawn, real), inside(real, drawn)
    return {
        "frechet": frechet(drawn, real),
        "frechet_se": float(np.std(again)),
        "precision": float(precise.mean()),
        "precision_se": float(precise.std() / len(precise) ** 0.5),
        "recall": float(recalled.mean()),
        "recall_se": float(recalled.std() / len(recalled) ** 0.5),
    }


def frechet(some: Features, others: Features) -> float:
    """The Frechet distance of two normal distributions with the means and covariances of these (Heusel et al., 2017).

    |m - m'|^2 + trace(S + S' - 2 (S S')^(1/2))
    """
    means = some.mean(axis=0) - others.mean(axis=0)
    first, second = (np.cov(each, rowvar=False) for each in (some, others))
    values, vectors = np.linalg.eigh(first)
    root = vectors * np.sqrt(values.clip(min=0)) @ vectors.T
    cross = np.linalg.eigvalsh(root @ second @ root).clip(min=0)  # those of S S', which is not symmetric
    return float(means @ means + np.trace(first) + np.trace(second) - 2 * np.sqrt(cross).sum())


def inside(some: Features, others: Features) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each of `some` is as near to one of `others` as that one's third neighbour is to it, [N].

    Of what is drawn among what is real that is precision, and the other way round recall (Kynkaanniemi et al., 2019,
    equations 1 and 2, with k = 3).
    """
    reach = cKDTree(others).query(others, k=_NEIGHBOURS + 1)[0][:, -1]  # the nearest is itself
    apart = np.linalg.norm(some[:, None] - others[None], axis=-1)
    return np.asarray((apart <= reach).any(axis=1))


def _resampled(features: Features, generator: np.random.RandomState) -> Features:
    return features[generator.randint(len(features), size=len(features))]
