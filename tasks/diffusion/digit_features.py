"""What tells digits apart: the features of a small classifier, trained once on the scans that tasks train on."""

import hashlib
from functools import lru_cache

import numpy as np
from torch import Tensor

from search_spaces.support.cache import Arrays, cache_arrays
from tasks.diffusion.frechet import Features
from tasks.vision.digits import DigitsViT

_HIDDEN = (64, 32)
_LAYERS = len(_HIDDEN)


def features(images: Tensor) -> Features:
    """What the classifier's last hidden layer makes of scans [N, 1, 8, 8] from 0 to 1, [N, 32]."""
    layers, activations = classifier(), images.flatten(1).double().numpy()
    for layer in range(_LAYERS):
        activations = np.maximum(activations @ layers[f"map{layer}"] + layers[f"bias{layer}"], 0)
    return activations


def digits(images: Tensor) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Which digit the classifier takes each scan [N, 1, 8, 8] for, [N]."""
    layers = classifier()
    scores = features(images) @ layers[f"map{_LAYERS}"] + layers[f"bias{_LAYERS}"]
    return np.asarray(scores.argmax(axis=1))


@lru_cache(maxsize=1)
def classifier() -> Arrays:
    """Its maps and biases. They are kept under the fingerprint of the scans and of how it is made."""
    splits = DigitsViT().load()
    version = hashlib.sha256(f"{splits.fingerprint} {_HIDDEN} lbfgs 0".encode()).hexdigest()[:12]
    return cache_arrays(f"digit-features-{version}.safetensors", _train_classifier)


def _train_classifier() -> Arrays:
    from sklearn.neural_network import MLPClassifier  # two seconds, once

    images, labels = DigitsViT().load().train
    model = MLPClassifier(_HIDDEN, alpha=1.0, max_iter=1000, random_state=0)
    model.fit(images.flatten(1).numpy(), labels.numpy())
    parameters = zip(model.coefs_, model.intercepts_, strict=True)
    return {
        name: np.ascontiguousarray(array, dtype=np.float64)
        for layer, arrays in enumerate(parameters)
        for name, array in zip((f"map{layer}", f"bias{layer}"), arrays, strict=True)
    }
