"""mnist1d-vit: the ten digits of MNIST-1D, signals of 40 numbers. Generated; nothing to download.

Shapes: B = batch, N = patches, P = numbers of a patch, S = signals.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.vit import build_vit, count_vit
from search_spaces.support.cache import Arrays, cache_arrays
from search_spaces.support.count import Count
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits, seeded_rng
from tasks.recipes.recipe import Recipe, Schedule
from tasks.recipes.settings import AtLeastOne, NonNegativeInt, UnitInterval
from tasks.training.classification import ClassificationTask
from tasks.vision.digits import AveragingViT, xavier_init

_NUMBERS, _PATCH, _CLASSES = 40, 8, 10
_PATCHES = (_PATCH, 1, _NUMBERS // _PATCH)  # an image of one row, whose channels are a patch's numbers
_SEED, _PUBLISHED_SEED, _VALIDATION_SEED = 0, 42, 1
_PUBLISHED_TRAIN, _PUBLISHED_TEST = 4000, 1000
_PUBLISHED_ACCURACIES = {"logistic regression": 0.32, "MLP": 0.68, "GRU": 0.91, "CNN": 0.94, "human expert": 0.96}
"""Method -> test accuracy in the table of the official repository (github.com/greydanus/mnist1d)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MNIST1DRecipe(Recipe):
    """Training on generated signals, or on the published ones.

    Attributes:
        examples: Training signals to generate. 0 takes the 4,000 published ones, and for test the 1,000 published ones.
        held_out: Validation signals to generate, and as many for test.
    """

    examples: NonNegativeInt = 16_000
    held_out: AtLeastOne = 8000
    optimizer: str = "muon"
    schedule: Schedule = "linear"
    label_smoothing: UnitInterval = 0.05


class SignalViT(AveragingViT):
    """A vision transformer of a signal's patches, whose classifier reads the mean of all tokens."""

    def forward(self, signals: Tensor) -> Tensor:
        """Map signals [B, 40] to class scores [B, 10]."""
        return super().forward(signals.unflatten(1, (-1, _PATCH)).transpose(1, 2)[:, :, None])  # [B, P, 1, N]


class MNIST1DViT(ClassificationTask):
    """Classification of MNIST-1D: digits as signals of 40 numbers (S. Greydanus and D. Kobak, ICML 2024).

    Each signal is a digit's template of 12 points, randomly padded, stretched, scaled, shifted, sheared and mixed with
    noise, by the package `mnist1d`. The task generates its signals with seeds of its own. Preset `published` trains on
    the 4,000 published signals and tests on the 1,000 published ones; only its validation signals are generated.
    """

    name = "mnist1d-vit"
    takes_data = False
    version = 1
    base = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=64)
    presets = {  # noqa: RUF012  # Task declares it a ClassVar
        "smoke": MNIST1DRecipe(examples=2000, held_out=1000, epochs=8, batch=100, lr=0.015, accelerator="cpu"),
        "proxy": MNIST1DRecipe(epochs=5, batch=100, lr=0.015, reports=2, accelerator="cpu"),
        "published": MNIST1DRecipe(examples=0, epochs=60, batch=100, lr=0.015, accelerator="cpu"),
    }

    def load(self) -> TensorSplits:
        """Generate the signals of preset `proxy`."""
        return self.splits_for(self.presets["proxy"])

    def splits_for(self, recipe: MNIST1DRecipe) -> TensorSplits:
        """Return a recipe's signals, generated once per machine."""
        return _splits(recipe.examples, recipe.held_out)

    def prepare(self) -> None:
        """Do nothing: signals depend on the recipe, and are generated when it is known."""

    def build(self, architecture: Architecture) -> nn.Module:
        """Build a vision transformer with mean pooling, [B, 40] to [B, 10]."""
        return SignalViT(xavier_init(build_vit(architecture, _PATCHES, 1, _CLASSES)))

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, _NUMBERS),)

    def closed_form(self, architecture: Architecture) -> Count:
        return count_vit(architecture, _PATCHES, 1, _CLASSES)

    def class_names(self) -> tuple[str, ...]:
        return tuple("0123456789")

    def baselines(self, recipe: MNIST1DRecipe) -> Mapping[str, Mapping[str, float]]:
        """Return the accuracies of simple classifiers of these signals; of published signals, also the printed ones."""
        columns = ("accuracy", "accuracy_se", "test_accuracy", "test_accuracy_se")
        splits = self.splits_for(recipe)
        digest = hashlib.sha256(f"{splits.fingerprint} {version('scikit-learn')} 1".encode()).hexdigest()[:16]
        trained = cache_arrays(f"mnist1d-{digest}.baselines", lambda: _train_baselines(splits))
        printed = {} if recipe.examples else _PUBLISHED_ACCURACIES
        return {
            **{name: dict(zip(columns, values.tolist(), strict=True)) for name, values in trained.items()},
            **{f"{name}, published": {"test_accuracy": accuracy} for name, accuracy in printed.items()},
        }


@lru_cache(maxsize=2)
def _splits(examples: int, held_out: int) -> TensorSplits:
    if examples:
        signals, digits = _signals(examples + 2 * held_out, _SEED)
        cuts = (0, examples, examples + held_out, examples + 2 * held_out)
        train, validation, test = ((signals[begin:end], digits[begin:end]) for begin, end in pairwise(cuts))
        return TensorSplits(train, validation, test)
    signals, digits = _signals(_PUBLISHED_TRAIN + _PUBLISHED_TEST, _PUBLISHED_SEED)
    train, test = ((signals[part], digits[part]) for part in (slice(_PUBLISHED_TRAIN), slice(_PUBLISHED_TRAIN, None)))
    return TensorSplits(train, _signals(held_out, _VALIDATION_SEED), test)


def _signals(number: int, seed: int) -> Batch:
    """Return standardized signals [S, 40] and their digits [S], generated or cached."""
    digest = hashlib.sha256(f"{version('mnist1d')} {number} {seed}".encode()).hexdigest()[:16]
    arrays = cache_arrays(f"mnist1d-{digest}.signals", lambda: _generate(number, seed))
    return torch.from_numpy(arrays["signals"]), torch.from_numpy(arrays["digits"]).long()


def _generate(number: int, seed: int) -> Arrays:
    from mnist1d.data import get_dataset_args, make_dataset  # loads matplotlib's pyplot

    arguments = get_dataset_args()
    per_digit = -(-number // _CLASSES)
    arguments.num_samples, arguments.seed, arguments.train_split = per_digit * _CLASSES, seed, 1.0
    with seeded_rng(seed):  # it seeds the global generators
        data = make_dataset(arguments)
    return {"signals": data["x"][:number].astype(np.float32), "digits": data["y"][:number].astype(np.uint8)}


def _train_baselines(splits: TensorSplits) -> Arrays:
    """Return accuracy and standard error on validation and on test, [4], of scikit-learn's classifiers."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # takes two seconds
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    models: dict[str, Any] = {
        "logistic regression": LogisticRegression(max_iter=1000),
        "gradient boosting": HistGradientBoostingClassifier(max_iter=200, random_state=0),
        "MLP": MLPClassifier((256, 256), early_stopping=True, random_state=0),
    }
    train_signals, train_digits = (part.numpy() for part in splits.train)
    accuracies = {}
    for name, model in models.items():
        model.fit(train_signals, train_digits)
        columns: list[float] = []
        for signals, digits in (splits.validation, splits.test):
            right = np.asarray(model.predict(signals.numpy()) == digits.numpy(), dtype=float)
            columns += [right.mean(), right.std() / len(right) ** 0.5]
        accuracies[name] = np.array(columns)
    return accuracies
