"""Masked language modeling: predict hidden tokens (Devlin et al., 2019).

Shapes: B = rows, N = context, V = vocabulary.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.masked_encoder import build_masked, count_masked
from search_spaces.support.count import Count
from search_spaces.support.rank import ALONE, RankInfo
from tasks.base import Metric
from tasks.data.batches import Batch
from tasks.data.splits import DataPosition, Part, Splits, derived_seed
from tasks.language.data import LanguageSplits
from tasks.language.measure import ratio, sum_by_document
from tasks.language.row_layouts import IGNORE_INDEX
from tasks.language.task import TextTask
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import UnitInterval

_HIDDEN, _RANDOM = 0.8, 0.1
"""Fractions of the target tokens that are masked and that are replaced by a random token; the rest stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRecipe(Recipe):
    """A recipe for masked text.

    Attributes:
        masked: Fraction of tokens to predict. Of these, 80 % are masked and 10 % are replaced by a random token.
        recompute: Whether to recompute layers in the backward pass, which saves memory.
    """

    masked: UnitInterval = 0.25
    recompute: bool = False


@dataclass(frozen=True, eq=False)
class MaskedSplits(Splits):
    """Splits of rows with masked tokens.

    Attributes:
        rows: The text.
        mask: Id of the mask token, outside the tokenizer's vocabulary.
    """

    rows: LanguageSplits
    mask: int

    @cached_property
    def fingerprint(self) -> str:
        """Hex digits of the rows and the mask token."""
        return hashlib.sha256(f"{self.rows.fingerprint} masked by {self.mask}".encode()).hexdigest()

    @property
    def num_examples(self) -> int:
        """Number of training rows."""
        return self.rows.num_examples

    def training_batches(
        self, recipe: Any, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Yield masked rows [B, N], which tokens are not padding [B, N], and the target tokens [B, N]."""
        for (ids, following), position in self.rows.training_batches(
            recipe, seed, start, torch.device("cpu"), rank_info
        ):
            draws = Generator().manual_seed(derived_seed(seed, "masked", *position, rank_info.rank))
            (hidden, real), labels = mask_tokens(ids, _padding_mask(following), recipe.masked, self.mask, draws)
            yield ((hidden.to(device), real.to(device)), {"asked": labels.to(device)}), position

    def evaluation_batches(
        self, part: Part, recipe: Any, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Yield the same for held-out rows, plus each row's document [B]. A row's mask is always the same."""
        for ids, answers in self.rows.evaluation_batches(part, recipe, torch.device("cpu"), rank_info):
            real = _padding_mask(answers[..., 0])
            rows = [
                mask_tokens(row[None], is_real[None], recipe.masked, self.mask, _row_generator(row))
                for row, is_real in zip(ids, real, strict=True)
            ]
            hidden = torch.cat([inputs[0] for inputs, _ in rows])
            targets = {"asked": torch.cat([labels for _, labels in rows]), "document": answers[:, 0, 2]}
            yield (hidden.to(device), real.to(device)), {name: tensor.to(device) for name, tensor in targets.items()}

    def counters(
        self, part: Part, recipe: Any, position: DataPosition, rank_info: RankInfo = ALONE
    ) -> Mapping[str, float]:
        return self.rows.counters(part, recipe, position, rank_info)


def mask_tokens(
    ids: Tensor, real: Tensor, share: float, mask: int, draws: Generator
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Mask rows; return them [B, N], which tokens are not padding, and the target tokens, IGNORE_INDEX elsewhere.

    Every real token is a target with probability `share`. `mask` is the largest id: random tokens are drawn below it.
    """
    is_target = (torch.rand(ids.shape, generator=draws) < share) & real
    replacement_draw = torch.rand(ids.shape, generator=draws)
    random_ids = torch.randint(mask, ids.shape, generator=draws)
    hidden = torch.where(is_target & (replacement_draw < _HIDDEN), mask, ids)
    hidden = torch.where(
        is_target & (replacement_draw >= _HIDDEN) & (replacement_draw < _HIDDEN + _RANDOM), random_ids, hidden
    )
    return (hidden, real), torch.where(is_target, ids, IGNORE_INDEX)


class MaskedTask(TextTask):
    """A task that predicts masked tokens. The last token id is the mask, so the tokenizer has one token less.

    Attributes:
        style: Style of the encoder, fixed by the task and not searched.
    """

    style: ClassVar[str]
    metrics = (Metric("loss", "nats per masked token", "min"), Metric("accuracy", "share of masked tokens", "max"))

    @property
    def max_tokens(self) -> int:
        return self.vocabulary - 1

    def load(self) -> MaskedSplits:
        return MaskedSplits(self.row_splits(), self.vocabulary - 1)

    def build(self, architecture: Architecture) -> nn.Module:
        """Build Crammed-BERT's encoder: ids [B, N] and a mask of real tokens [B, N] to logits [B, N, V]."""
        return build_masked(architecture, self.style, self.vocabulary, self.context)

    def build_for_training(self, architecture: Architecture, recipe: MaskedRecipe) -> nn.Module:
        """Build the encoder with the recipe's recomputation of layers."""
        model = build_masked(architecture, self.style, self.vocabulary, self.context)
        model.stack.recompute = recipe.recompute
        return model

    def closed_form(self, architecture: Architecture) -> Count:
        return count_masked(architecture, self.style, self.vocabulary, self.context)

    def loss(self, outputs: Tensor, targets: Mapping[str, Tensor], recipe: MaskedRecipe) -> Tensor:
        """Return the mean of -log p over the target tokens; 0 if a batch has none."""
        nats = F.cross_entropy(
            outputs.flatten(0, 1), targets["asked"].flatten(), ignore_index=IGNORE_INDEX, reduction="sum"
        )
        return nats / (targets["asked"] != IGNORE_INDEX).sum().clamp(min=1)

    def measure(self, outputs: Tensor, targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return nats, target tokens, correct predictions and document of each row, [B]."""
        labels = targets["asked"]
        nats = F.cross_entropy(outputs.flatten(0, 1), labels.flatten(), ignore_index=IGNORE_INDEX, reduction="none")
        return {
            "nats": nats.view_as(labels).sum(dim=1),
            "tokens": (labels != IGNORE_INDEX).sum(dim=1),
            "right": (outputs.argmax(dim=-1) == labels).sum(dim=1),
            "document": targets["document"],
        }

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """Return loss and accuracy over all target tokens, with standard errors over documents if there are several."""
        nats, right, tokens = sum_by_document(measures, "nats", "right", "tokens")
        (loss, loss_se), (accuracy, accuracy_se) = ratio(nats, tokens), ratio(right, tokens)
        metrics = {"loss": loss, "accuracy": accuracy}
        return metrics | {"loss_se": loss_se, "accuracy_se": accuracy_se} if len(nats) > 1 else metrics


def _padding_mask(following: Tensor) -> Tensor:
    """Return which tokens of rows are not padding [B, N], from the token after each."""
    first = torch.ones_like(following[:, :1], dtype=torch.bool)
    return torch.cat((first, following[:, :-1] != IGNORE_INDEX), dim=1)


def _row_generator(row: Tensor) -> Generator:
    """Return a generator seeded by the row's tokens, so that a row is always masked in the same way."""
    digest = hashlib.sha256(row.numpy().tobytes()).digest()
    return Generator().manual_seed(int.from_bytes(digest[:4]))
