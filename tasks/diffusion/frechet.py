"""Distances between generated and real pictures in feature space.

Shapes: N = generated, M = real, K = features.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch

_NEIGHBOURS = 3
_BOOTSTRAPS = 100
_CHUNK = 1000
"""Features whose distances to all others are in memory at once."""

Features = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Normal(NamedTuple):
    """A normal distribution with mean [K] and covariance [K, K]."""

    mean: np.ndarray[tuple[int], np.dtype[np.float64]]
    covariance: Features


def normal(features: Features) -> Normal:
    """Fit a normal distribution to features [N, K]."""
    return Normal(features.mean(axis=0), np.atleast_2d(np.cov(features, rowvar=False)))


def distances(samples: Features, real: Features) -> Mapping[str, float]:
    """Return Frechet distance, precision and recall of generated [N, K] against real features [M, K], with errors.

    The standard error of the distance is its deviation over bootstrap samples of both sets.
    """
    generator = np.random.RandomState(0)
    again = [
        frechet(normal(_bootstrap(samples, generator)), normal(_bootstrap(real, generator))) for _ in range(_BOOTSTRAPS)
    ]
    metrics = {"frechet": frechet(normal(samples), normal(real)), "frechet_se": float(np.std(again))}
    return metrics | precision_and_recall(samples, real)


def frechet(first: Normal, second: Normal) -> float:
    """Return the Frechet distance of two normal distributions (Heusel et al., 2017).

    |m - m'|^2 + trace(S + S' - 2 (S S')^(1/2))
    """
    difference = first.mean - second.mean
    values, vectors = np.linalg.eigh(first.covariance)
    root = vectors * np.sqrt(values.clip(min=0)) @ vectors.T
    cross = np.linalg.eigvalsh(root @ second.covariance @ root).clip(min=0)  # the eigenvalues of S S'
    return float(
        difference @ difference + np.trace(first.covariance) + np.trace(second.covariance) - 2 * np.sqrt(cross).sum()
    )


def precision_and_recall(samples: Features, real: Features) -> dict[str, float]:
    """Return the fraction of generated features among real ones, and vice versa, with standard errors."""
    in_real, in_samples = in_manifold(samples, real), in_manifold(real, samples)
    return {
        "precision": float(in_real.mean()),
        "precision_se": float(in_real.std() / len(in_real) ** 0.5),
        "recall": float(in_samples.mean()),
        "recall_se": float(in_samples.std() / len(in_samples) ** 0.5),
    }


def in_manifold(queries: Features, references: Features) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return for each query whether it is as near to a reference as that reference's third neighbor, [N].

    The mean for generated queries and real references is precision, the reverse is recall (Kynkaanniemi et al., 2019,
    equations 1 and 2, with k = 3).
    """
    points, centres = torch.from_numpy(queries), torch.from_numpy(references)
    near = [torch.cdist(part, centres).kthvalue(_NEIGHBOURS + 1).values for part in centres.split(_CHUNK)]
    reach = torch.cat(near)  # the nearest of four is the point itself
    return torch.cat([(torch.cdist(part, centres) <= reach).any(dim=1) for part in points.split(_CHUNK)]).numpy()


def _bootstrap(features: Features, generator: np.random.RandomState) -> Features:
    return features[generator.randint(len(features), size=len(features))]
