"""How far what is drawn is from what is real, in the features of a network that knows such pictures.

Shapes: N = drawn, M = real, K = features.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch

_NEIGHBOURS = 3
_BOOTSTRAPS = 100
_CHUNK = 1000
"""Features whose distances to all others are in memory together."""

Features = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Normal(NamedTuple):
    """A normal distribution by its mean [K] and covariance [K, K]."""

    mean: np.ndarray[tuple[int], np.dtype[np.float64]]
    covariance: Features


def normal(features: Features) -> Normal:
    """The distribution with the mean and covariance of features [N, K]."""
    return Normal(features.mean(axis=0), np.atleast_2d(np.cov(features, rowvar=False)))


def distances(samples: Features, real: Features) -> Mapping[str, float]:
    """Frechet distance, precision and recall of what is drawn [N, K] against what is real [M, K], with their errors.

    The standard error of the distance is the deviation over draws of as many from both sets, each with replacement.
    """
    generator = np.random.RandomState(0)
    again = [
        frechet(normal(_bootstrap(samples, generator)), normal(_bootstrap(real, generator))) for _ in range(_BOOTSTRAPS)
    ]
    metrics = {"frechet": frechet(normal(samples), normal(real)), "frechet_se": float(np.std(again))}
    return metrics | precision_and_recall(samples, real)


def frechet(first: Normal, second: Normal) -> float:
    """The Frechet distance of two normal distributions (Heusel et al., 2017).

    |m - m'|^2 + trace(S + S' - 2 (S S')^(1/2))
    """
    difference = first.mean - second.mean
    values, vectors = np.linalg.eigh(first.covariance)
    root = vectors * np.sqrt(values.clip(min=0)) @ vectors.T
    cross = np.linalg.eigvalsh(root @ second.covariance @ root).clip(min=0)  # those of S S', which is not symmetric
    return float(
        difference @ difference + np.trace(first.covariance) + np.trace(second.covariance) - 2 * np.sqrt(cross).sum()
    )


def precision_and_recall(samples: Features, real: Features) -> dict[str, float]:
    """Shares of what is drawn that lies among what is real, and the other way round, with their standard errors."""
    in_real, in_samples = inside(samples, real), inside(real, samples)
    return {
        "precision": float(in_real.mean()),
        "precision_se": float(in_real.std() / len(in_real) ** 0.5),
        "recall": float(in_samples.mean()),
        "recall_se": float(in_samples.std() / len(in_samples) ** 0.5),
    }


def inside(queries: Features, references: Features) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each of `queries` is as near to one of `references` as that one's third neighbour is to it, [N].

    Of what is drawn among what is real that is precision, and the other way round recall (Kynkaanniemi et al., 2019,
    equations 1 and 2, with k = 3).
    """
    points, centres = torch.from_numpy(queries), torch.from_numpy(references)
    near = [torch.cdist(part, centres).kthvalue(_NEIGHBOURS + 1).values for part in centres.split(_CHUNK)]
    reach = torch.cat(near)  # the nearest of four is the point itself
    return torch.cat([(torch.cdist(part, centres) <= reach).any(dim=1) for part in points.split(_CHUNK)]).numpy()


def _bootstrap(features: Features, generator: np.random.RandomState) -> Features:
    return features[generator.randint(len(features), size=len(features))]
