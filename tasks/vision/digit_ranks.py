"""digit-ranks-vit: rank each of four handwritten digits in a grid. Needs no download.

One block reads digits and compares them a little; more blocks and heads compare better. So size pays off within a
minute of training, and two seeds agree.

Shapes: B = batch, S = scans.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.vit import ViT, build_vit, count_vit
from search_spaces.support.count import Count, linear
from tasks.base import Metric
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits
from tasks.input_formats import ImageInputs, InputFormat
from tasks.recipes.recipe import Recipe
from tasks.training.supervised import SupervisedTask
from tasks.vision.digits import DigitsRecipe, DigitsViT, pixel_regression, xavier_init
from tasks.vision.task import warp

_IMAGE, _PATCH, _RANKS = (1, 16, 16), 4, 4
_BY_GRID = "logistic regression on the grid's pixels"
_BY_SCAN = "logistic regression on each scan, given where it lies"
_TRAINING_GRIDS = 2000  # for the first of these
_GRIDS = 720  # for validation and for test each: each of the 360 scans is in eight grids


class RankingViT(nn.Module):
    """A ViT that ranks the four scans of a grid, each by the mean of its tokens."""

    def __init__(self, vit: ViT) -> None:
        super().__init__()
        self.embedding, self.stack, self.head = vit.embedding, vit.stack, vit.head

    def forward(self, images: Tensor) -> Tensor:
        """Map grids [B, 1, 16, 16] to scores of ranks, [B, 4, 4], with scans in reading order."""
        tokens = self.stack(*self.embedding(images))[:, 1:]  # without the class token: 4 x 4 patches, 2 x 2 a scan
        by_scan = tokens.unflatten(1, (2, 2, 2, 2)).mean(dim=(2, 4)).flatten(1, 2)  # [B, 4, width]
        return self.head(by_scan)  # type: ignore[no-any-return]


class DigitRanksViT(SupervisedTask):
    """For each of the four digits in a grid, predict how many of the others are smaller: ranks 0 to 3.

    The scans and their split are those of digits-vit. Each training batch arranges its scans into an equal number of
    random grids. Each scan is in four grids, with random rotation, shift and stretch. Validation and test use fixed
    grids of their own scans. Metrics are means over a grid's four answers. Standard errors are for a new sample of
    scans, not for new grids of the same scans.
    """

    name = "digit-ranks-vit"
    takes_data = False
    version = 1
    metrics = (Metric("accuracy", "share", "max"), Metric("loss", "nats", "min"))
    base = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=64)
    presets = {  # noqa: RUF012  # Task declares it a ClassVar
        "smoke": DigitsRecipe(epochs=8, batch=64, lr=0.004, accelerator="cpu"),
        "proxy": DigitsRecipe(epochs=45, batch=64, lr=0.004, accelerator="cpu"),
    }

    def load(self) -> TensorSplits:
        """Read the scans from scikit-learn's files and arrange the evaluation grids."""
        return _grids()

    def build(self, architecture: Architecture) -> nn.Module:
        """Build a vision transformer that ranks each scan, [B, 1, 16, 16] to [B, 4, 4]."""
        return RankingViT(xavier_init(build_vit(architecture, _IMAGE, _PATCH, _RANKS)))

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, *_IMAGE),)

    def closed_form(self, architecture: Architecture) -> Count:
        """Return that network's parameters and MACs; its classifier is applied to four scans."""
        head = linear(architecture.width, _RANKS)
        return count_vit(architecture, _IMAGE, _PATCH, _RANKS) + Count(macs=3 * head.macs)

    def input_format(self) -> InputFormat:
        return ImageInputs(channels=1, height=16, width=16)

    def preprocess(self, inputs: Tensor) -> Tensor:
        """Standardize grey pixels as digits-vit does."""
        return DigitsViT().preprocess(inputs)

    def loss(self, outputs: Tensor, targets: Mapping[str, Tensor], recipe: Recipe) -> Tensor:
        """Return the cross-entropy of the four answers, with the recipe's label smoothing."""
        answers = targets["ranks"].flatten()
        return F.cross_entropy(outputs.flatten(0, 1), answers, label_smoothing=recipe.label_smoothing)

    def measure(self, outputs: Tensor, targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return each grid's accuracy and mean cross-entropy, [B], and its scans, [B, 4]."""
        ranks = targets["ranks"]
        entropy = F.cross_entropy(outputs.flatten(0, 1), ranks.flatten(), reduction="none").view_as(ranks)
        right = (outputs.argmax(dim=-1) == ranks).float()
        return {"accuracy": right.mean(dim=1), "loss": entropy.mean(dim=1), "scans": targets["scans"]}

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """Return the means over grids, with standard errors for a new sample of scans."""
        summary = {}
        for name in ("accuracy", "loss"):
            values = measures[name].double()
            summary[name] = values.mean().item()
            summary[f"{name}_se"] = clustered_standard_error(values, measures["scans"])
        return summary

    def baselines(self, recipe: Any) -> Mapping[str, Mapping[str, float]]:
        """Return the metrics of two logistic regressions; the same for every recipe.

        One sees what networks see, the pixels of a grid. The other is given where each scan lies, and ranks its digits.
        """
        digits, grids, by_scan = DigitsViT().load(), _grids(), pixel_regression()
        by_grid = _grid_regressions()
        baselines: dict[str, dict[str, float]] = {_BY_GRID: {}, _BY_SCAN: {}}
        for prefix, scans, (images, answers) in (
            ("", digits.validation[0], grids.validation),
            ("test_", digits.test[0], grids.test),
        ):
            read = torch.as_tensor(by_scan.predict(scans.flatten(1).numpy()))[answers["scans"]]
            pixels = images.flatten(1).numpy()
            answered = torch.stack([torch.as_tensor(model.predict(pixels)) for model in by_grid], dim=1)
            for name, ranks in ((_BY_GRID, answered), (_BY_SCAN, rank_digits(read))):
                right = (ranks == answers["ranks"]).double().mean(dim=1)
                baselines[name][f"{prefix}accuracy"] = right.mean().item()
                baselines[name][f"{prefix}accuracy_se"] = clustered_standard_error(right, answers["scans"])
        return baselines


def clustered_standard_error(values: Tensor, parts: Tensor) -> float:
    """Return the standard error of the mean of values [B] that share parts, given by their indices [B, P].

    Two values that share a part are correlated. The variance is the sum of the products of deviations over all pairs
    that share one, divided by B^2 (P. Aronow, C. Samii and V. Assenova, "Cluster-Robust Variance Estimation for Dyadic
    Data", Political Analysis, 2015, for pairs). A pair that shares several parts counts once for each.
    """
    deviations = values - values.mean()
    per_part = deviations.repeat_interleave(parts.shape[1])
    sums = torch.zeros(int(parts.max()) + 1, dtype=deviations.dtype, device=deviations.device).index_add_(
        0, parts.flatten(), per_part
    )
    diagonal = (parts.shape[1] - 1) * (deviations**2).sum()  # each value is paired with itself once per part
    return float((((sums**2).sum() - diagonal).clamp(min=0)).sqrt() / len(values))


@lru_cache(maxsize=1)
def _grid_regressions() -> list[Any]:
    """Return scikit-learn's logistic regressions of each scan's rank, fitted to the pixels of random training grids."""
    from sklearn.linear_model import LogisticRegression  # takes two seconds

    images, answers = _fixed_grids(DigitsViT().load().train, seed=2, number=_TRAINING_GRIDS)
    pixels = images.flatten(1).numpy()
    return [LogisticRegression(max_iter=300).fit(pixels, ranks.numpy()) for ranks in answers["ranks"].T]


def rank_digits(digits: Tensor) -> Tensor:
    """Return how many of a grid's digits are smaller than each, [..., 4] to [..., 4]."""
    return (digits[..., None, :] < digits[..., :, None]).sum(dim=-1)


@lru_cache(maxsize=1)
def _grids() -> TensorSplits:
    digits = DigitsViT().load()
    validation, test = (_fixed_grids(part, seed) for seed, part in enumerate((digits.validation, digits.test)))
    return TensorSplits(digits.train, validation, test, augment=_random_grids, encode=digits.encode)


def _fixed_grids(part: Batch, seed: int, number: int = _GRIDS) -> Batch:
    """Return fixed grids of a part's scans [S, 1, 8, 8] with their ranks and the scans' indices; digits are [S]."""
    scans, digits = part
    generator = Generator().manual_seed(seed)
    orders = [torch.randperm(len(scans), generator=generator) for _ in range(-(-number * 4 // len(scans)))]
    indices = torch.cat(orders)[: number * 4].view(number, 4)
    return _grid(scans[indices]), {"ranks": rank_digits(digits[indices]), "scans": indices}


def _random_grids(batch: Batch, recipe: DigitsRecipe, generator: Generator) -> Batch:
    """Return as many random grids as the batch has scans; each scan is in four."""
    scans, digits = batch
    device = digits.device
    indices = torch.stack([torch.randperm(len(scans), generator=generator, device=device) for _ in range(4)], dim=1)
    pixels = warp(scans[indices].flatten(0, 1), recipe.degrees, recipe.shift, recipe.scale, generator)
    return _grid(pixels.view(-1, 4, *scans.shape[1:])), {"ranks": rank_digits(digits[indices])}


def _grid(scans: Tensor) -> Tensor:
    """Join four scans, [B, 4, 1, 8, 8], to one image, [B, 1, 16, 16]."""
    rows = [torch.cat([scans[:, column], scans[:, column + 1]], dim=-1) for column in (0, 2)]
    return torch.cat(rows, dim=-2)
