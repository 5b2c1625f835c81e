"""Features of digits: a small classifier, trained once on the training scans."""

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
    """Return the classifier's last hidden layer for scans [N, 1, 8, 8] from 0 to 1, [N, 32]."""
    layers, activations = classifier(), images.flatten(1).double().numpy()
    for layer in range(_LAYERS):
        activations = np.maximum(activations @ layers[f"map{layer}"] + layers[f"bias{layer}"], 0)
    return activations


def digits(images: Tensor) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the digit that the classifier predicts for each scan [N, 1, 8, 8], [N]."""
    layers = classifier()
    scores = features(images) @ layers[f"map{_LAYERS}"] + layers[f"bias{_LAYERS}"]
    return np.asarray(scores.argmax(axis=1))


@lru_cache(maxsize=1)
def classifier() -> Arrays:
    """Return the classifier's weights and biases, cached by the fingerprint of the scans and its settings."""
    splits = DigitsViT().load()
    version = hashlib.sha256(f"{splits.fingerprint} {_HIDDEN} lbfgs 0".encode()).hexdigest()[:12]
    return cache_arrays(f"digit-features-{version}.safetensors", _train_classifier)


def _train_classifier() -> Arrays:
    from sklearn.neural_network import MLPClassifier  # takes two seconds

    images, labels = DigitsViT().load().train
    model = MLPClassifier(_HIDDEN, alpha=1.0, max_iter=1000, random_state=0)
    model.fit(images.flatten(1).numpy(), labels.numpy())
    parameters = zip(model.coefs_, model.intercepts_, strict=True)
    return {
        name: np.ascontiguousarray(array, dtype=np.float64)
        for layer, arrays in enumerate(parameters)
        for name, array in zip((f"map{layer}", f"bias{layer}"), arrays, strict=True)
    }
