"""Masked language modelling: some tokens are hidden, and the network says which they were (Devlin et al., 2019).

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
from tasks.recipes.settings import ShareOfOne

_HIDDEN, _RANDOM = 0.8, 0.1
"""Of the tokens that are asked for, those that are hidden and those in whose place another stands; the rest stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRecipe(Recipe):
    """A recipe with what only masked text has.

    Attributes:
        masked: Share of the tokens that are asked for. Four in five of these are hidden, and in the place of one in ten
            stands any other.
        recompute: Whether layers are computed again in the backward pass, which saves their memory.
    """

    masked: ShareOfOne = 0.25
    recompute: bool = False


@dataclass(frozen=True, eq=False)
class MaskedSplits(Splits):
    """Rows of tokens, some of which are hidden.

    Attributes:
        rows: The text.
        mask: The id that stands for a hidden token; it is none of the tokenizer's.
    """

    rows: LanguageSplits
    mask: int

    @cached_property
    def fingerprint(self) -> str:
        """Of the rows, and of what hides tokens."""
        return hashlib.sha256(f"{self.rows.fingerprint} masked by {self.mask}".encode()).hexdigest()

    @property
    def examples(self) -> int:
        """How many rows there are to train on."""
        return self.rows.examples

    def training(
        self, recipe: Any, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Rows [B, N] with tokens hidden and which are no padding, and the tokens that are asked for [B, N]."""
        for (ids, following), position in self.rows.training(recipe, seed, start, torch.device("cpu"), rank_info):
            draws = Generator().manual_seed(derived_seed(seed, "masked", *position, rank_info.rank))
            (hidden, real), labels = mask_tokens(ids, _real(following), recipe.masked, self.mask, draws)
            yield ((hidden.to(device), real.to(device)), {"asked": labels.to(device)}), position

    def evaluation_batches(
        self, part: Part, recipe: Any, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """The same of rows that are held out, each hidden as always, with its document [B]."""
        for ids, answers in self.rows.evaluation_batches(part, recipe, torch.device("cpu"), rank_info):
            real = _real(answers[..., 0])
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
        """How many documents could not be read, where there were any."""
        return self.rows.counters(part, recipe, position, rank_info)


def mask_tokens(
    ids: Tensor, real: Tensor, share: float, mask: int, draws: Generator
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Rows [B, N] with tokens hidden, which of them are real, and the target tokens, IGNORE_INDEX elsewhere.

    Every real token is asked for with the same chance. `mask` is the largest id: others are drawn below it.
    """
    is_target = (torch.rand(ids.shape, generator=draws) < share) & real
    fate = torch.rand(ids.shape, generator=draws)
    random_ids = torch.randint(mask, ids.shape, generator=draws)
    hidden = torch.where(is_target & (fate < _HIDDEN), mask, ids)
    hidden = torch.where(is_target & (fate >= _HIDDEN) & (fate < _HIDDEN + _RANDOM), random_ids, hidden)
    return (hidden, real), torch.where(is_target, ids, IGNORE_INDEX)


class MaskedTask(TextTask):
    """Say which tokens were hidden. The last id of the vocabulary hides them, so that a tokenizer has one less.

    Attributes:
        style: Of the encoder, which the task fixes and nobody searches.
    """

    style: ClassVar[str]
    metrics = (Metric("loss", "nats per masked token", "min"), Metric("accuracy", "share of masked tokens", "max"))

    @property
    def words(self) -> int:
        """The most tokens that a tokenizer may have."""
        return self.vocabulary - 1

    def load(self) -> MaskedSplits:
        """Read what is small, and find the rest."""
        return MaskedSplits(self.rows(), self.vocabulary - 1)

    def build(self, architecture: Architecture) -> nn.Module:
        """Crammed-BERT's encoder: ids [B, N] and which are real [B, N] to logits [B, N, V]."""
        return build_masked(architecture, self.style, self.vocabulary, self.context)

    def build_for_training(self, architecture: Architecture, recipe: MaskedRecipe) -> nn.Module:
        """The same, its layers computed twice where the recipe wants memory saved."""
        model = build_masked(architecture, self.style, self.vocabulary, self.context)
        model.stack.recompute = recipe.recompute
        return model

    def closed_form(self, architecture: Architecture) -> Count:
        """Of the encoder, for one row."""
        return count_masked(architecture, self.style, self.vocabulary, self.context)

    def loss(self, outputs: Tensor, targets: Mapping[str, Tensor], recipe: MaskedRecipe) -> Tensor:
        """The mean of -log p over the tokens that are asked for; 0 where a batch has none."""
        nats = F.cross_entropy(
            outputs.flatten(0, 1), targets["asked"].flatten(), ignore_index=IGNORE_INDEX, reduction="sum"
        )
        return nats / (targets["asked"] != IGNORE_INDEX).sum().clamp(min=1)

    def measure(self, outputs: Tensor, targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Nats, tokens that are asked for and those that are right, and the document, of each row, [B]."""
        labels = targets["asked"]
        nats = F.cross_entropy(outputs.flatten(0, 1), labels.flatten(), ignore_index=IGNORE_INDEX, reduction="none")
        return {
            "nats": nats.view_as(labels).sum(dim=1),
            "tokens": (labels != IGNORE_INDEX).sum(dim=1),
            "right": (outputs.argmax(dim=-1) == labels).sum(dim=1),
            "document": targets["document"],
        }

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """Loss and accuracy over all tokens that were asked for, with standard errors over documents if several."""
        nats, right, tokens = sum_by_document(measures, "nats", "right", "tokens")
        (loss, loss_se), (accuracy, accuracy_se) = ratio(nats, tokens), ratio(right, tokens)
        metrics = {"loss": loss, "accuracy": accuracy}
        return metrics | {"loss_se": loss_se, "accuracy_se": accuracy_se} if len(nats) > 1 else metrics


def _real(following: Tensor) -> Tensor:
    """Which tokens of rows are no padding [B, N], from what follows each."""
    first = torch.ones_like(following[:, :1], dtype=torch.bool)
    return torch.cat((first, following[:, :-1] != IGNORE_INDEX), dim=1)


def _row_generator(row: Tensor) -> Generator:
    """What hides the tokens of a row: the row says."""
    digest = hashlib.sha256(row.numpy().tobytes()).digest()
    return Generator().manual_seed(int.from_bytes(digest[:4]))
