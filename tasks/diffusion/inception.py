"""Inception features of pictures by torch-fidelity, and FID against real pictures.

The features are those of published numbers: 2,048 pooled ones; for sFID 7 channels of 17 x 17 positions, as in ADM's
evaluation (Dhariwal and Nichol, 2021); and 1,008 logits without bias for the Inception score.

Shapes: N = pictures, H and W = height and width.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from search_spaces.support.cache import Arrays, cache_arrays
from search_spaces.support.errors import Kind, UserError
from search_spaces.support.files import check_regular_file, kind_of_read_error
from search_spaces.support.progress import status_if_slow
from tasks.data.image_sources import file_stamp
from tasks.diffusion.frechet import Features, Normal, frechet, normal, precision_and_recall

_CHUNK = 64
_SPATIAL = 7
"""Channels whose positions are spatial features."""
_PARTS = 10
"""Number of splits for the Inception score and its standard error."""
_STATISTICS = ("mu", "sigma", "mu_s", "sigma_s")
"""Mean and covariance of pooled and spatial features, by the names in ADM's evaluation."""


class InceptionFeatures(NamedTuple):
    """Inception features of pictures: [N, 2048], [N, 2023] and [N, 1008]."""

    pooled: Features
    spatial: Features
    logits: Features


class ReferenceStatistics(NamedTuple):
    """A set of real pictures: pooled features of some of them, and the statistics for FID and sFID."""

    pooled: Features
    fid: Normal
    sfid: Normal


def inception(weights: Path | None) -> nn.Module:
    """Load Inception with the weights of a file, or those that torch-fidelity finds or downloads.

    Raises:
        UserError: torch-fidelity is not installed, or there are no weights.
    """
    try:
        from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3
    except ImportError as error:
        raise UserError(
            "needs-extra",
            f"FID needs torch-fidelity ({error}). Install the extra "
            f'"diffusion": pip install ".[diffusion]". Or draw no samples: --set samples=0.',
            extra="diffusion",
        ) from error
    try:
        if weights is not None:
            # torch-fidelity would execute its contents.
            torch.load(check_regular_file(weights), weights_only=True, mmap=True)
        with status_if_slow("loading Inception ..."):
            extractor: Any = FeatureExtractorInceptionV3
            network: nn.Module = extractor(
                "inception-v3-compat", ["2048", "logits_unbiased"], None if weights is None else str(weights)
            )
    except UserError:
        raise
    except Exception as error:  # errors of the network, of pickle, or of missing names
        raise UserError(
            "unavailable" if weights is None else kind_of_read_error(error),
            f"Inception's weights cannot be loaded: {str(error).splitlines()[0]:.200}. Put torch-fidelity's "
            f"pt_inception-2015-12-05-6726825d.pth into the data folder as inception.pth, or draw no samples: "
            f"--set samples=0.",
            path=None if weights is None else str(weights),
            cause=type(error).__name__,
        ) from error
    return network


def extract_features(network: nn.Module, pictures: Iterable[Tensor], device: torch.device) -> InceptionFeatures:
    """Return the features of batches of pictures [B, 3, H, W], bytes."""
    network = network.to(device)
    places: list[Tensor] = []
    layer: Any = network.get_submodule("Mixed_6d.branch1x1")
    hook = layer.register_forward_hook(lambda _, __, output: places.append(output[:, :_SPATIAL].flatten(1).cpu()))
    outputs: list[tuple[Tensor, Tensor]] = []
    try:
        with torch.no_grad():
            for batch in pictures:
                for part in batch.split(_CHUNK):
                    pooled, logits = network(part.to(device))
                    outputs.append((pooled.cpu(), logits.cpu()))
    finally:
        hook.remove()
    columns = ([output[0] for output in outputs], places, [output[1] for output in outputs])
    return InceptionFeatures(*(torch.cat(parts).double().numpy() for parts in columns))


def real_pictures(file: Path, network: nn.Module, device: torch.device) -> ReferenceStatistics:
    """Read a reference batch in ADM's format: arr_0 [N, H, W, 3] in bytes. Its features are cached.

    If the file also has statistics of more pictures (mu, sigma, mu_s, sigma_s), FID and sFID use those.

    Raises:
        UserError: It is no such file.
    """
    try:
        state, weights = file_stamp(file), next(network.parameters())
        version = f"{file.resolve()} {state} {weights.double().sum().item()}"
        name = f"inception-{hashlib.sha256(version.encode()).hexdigest()[:12]}.safetensors"
        arrays = cache_arrays(name, lambda: _reference(file, network, device))
    except UserError:
        raise
    except (OSError, ValueError, KeyError) as error:
        raise _no_reference("bad-file", file, error) from error
    return ReferenceStatistics(
        arrays["pooled"], Normal(arrays["mu"], arrays["sigma"]), Normal(arrays["mu_s"], arrays["sigma_s"])
    )


def fid_scores(samples: InceptionFeatures, real: ReferenceStatistics) -> dict[str, float]:
    """Return FID, sFID, Inception score, precision and recall of samples, the last three with standard errors."""
    from torch_fidelity.metric_isc import isc_features_to_metric

    score = isc_features_to_metric(torch.from_numpy(samples.logits), splits=_PARTS)
    return {
        "fid": frechet(normal(samples.pooled), real.fid),
        "sfid": frechet(normal(samples.spatial), real.sfid),
        "inception_score": score["inception_score_mean"],
        "inception_score_se": score["inception_score_std"] / _PARTS**0.5,
        **precision_and_recall(samples.pooled, real.pooled),
    }


def _no_reference(kind: Kind, file: Path, reason: object) -> UserError:
    must = "must be a reference batch of pictures in the format of ADM's evaluation (arr_0)"
    return UserError(kind, f"{str(file)!r} {must}: {reason}", path=str(file))


def _reference(file: Path, network: nn.Module, device: torch.device) -> Arrays:
    with np.load(check_regular_file(file), allow_pickle=False) as read:
        pictures = read["arr_0"]
        if pictures.dtype != np.uint8 or pictures.ndim != 4 or pictures.shape[3] != 3:
            form = f"{pictures.dtype} {list(pictures.shape)}"
            raise _no_reference("bad-data", file, f"arr_0 must be bytes [N, H, W, 3], got {form}")
        statistics = {name: np.asarray(read[name], dtype=np.float64) for name in _STATISTICS if name in read}
    with status_if_slow(f"extracting features of {len(pictures)} real pictures ..."):
        parts = (
            torch.from_numpy(pictures[first : first + _CHUNK]).permute(0, 3, 1, 2)
            for first in range(0, len(pictures), _CHUNK)
        )
        features = extract_features(network, parts, device)
    fid, sfid = normal(features.pooled), normal(features.spatial)
    computation = dict(zip(_STATISTICS, (*fid, *sfid), strict=True))
    return {"pooled": features.pooled, **computation, **statistics}
