"""Base classes of the Long Range Arena tasks: an encoder with mean pooling and a classifier.

Shapes: E = examples, B = batch, N = tokens, T = texts of an example.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.nystrom import Nystrom
from search_spaces.models.encoder import PADDING, EncoderSizes, build_encoder, count_encoder
from search_spaces.support.count import Count
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits
from tasks.lra.lra_presets import LongRangeRecipe
from tasks.training.classification import ClassificationTask
from tasks.training.supervised import means_and_errors

_LANDMARKS, _KERNEL = 64, 35
"""Landmarks and convolution kernel of the published Nyström attention."""

MAX_BYTES = 4000
"""Bytes to read of a review or a paper."""

Columns = dict[str, float]


class LongRangeTask(ClassificationTask):
    """Classification of a sequence, or of a pair of sequences.

    Networks are Nyströmformer's for the Long Range Arena (2 layers, 2 heads of 32, 64 features). They are counted at
    the published length whatever the preset: parameters include every position, FLOPs those of `context` tokens.

    Attributes:
        vocabulary: Number of ids; 0 is padding.
        context: Positions of the network.
        classes: Number of classes.
        texts: Sequences per example.
    """

    vocabulary: ClassVar[int] = 512
    context: ClassVar[int]
    classes: ClassVar[int]
    texts: ClassVar[int] = 1
    base = Architecture(depth=2, width=64, heads=2, head_dim=32, hidden=128)
    presets: ClassVar[Mapping[str, LongRangeRecipe]]

    @abstractmethod
    def load(self) -> TensorSplits:
        """Read the data: ids [E, N], or [E, T, N], as `splits_of` takes them. Raises UserError if it is missing."""

    def splits_for(self, recipe: LongRangeRecipe) -> TensorSplits:
        """Return the data with sequences truncated to the recipe's tokens."""
        splits = self.splits
        assert isinstance(splits, TensorSplits)
        return _truncate(splits, recipe.tokens)

    def build(self, architecture: Architecture) -> nn.Module:
        """Build an encoder, [B, N] or [B, T, N] to [B, classes]."""
        return build_encoder(architecture, self._sizes())

    def build_for_training(self, architecture: Architecture, recipe: LongRangeRecipe) -> nn.Module:
        """Build the encoder with the recipe's landmarks, scaling, pooling and dropout."""
        return build_encoder(architecture, self._training_sizes(recipe))

    def example(self) -> tuple[Tensor, ...]:
        """Return one sequence of the context's length, or one pair."""
        shape = (1, self.context) if self.texts == 1 else (1, self.texts, self.context)
        return (torch.ones(shape, dtype=torch.long),)

    def closed_form(self, architecture: Architecture) -> Count:
        return count_encoder(architecture, self._sizes(), self.context)

    def baselines(self, recipe: Any) -> Mapping[str, Columns]:
        """Return the metrics of the most frequent training answer."""
        splits = self.splits_for(recipe)
        return {"majority class": group_majority(splits, lambda inputs: torch.zeros(len(inputs)))}

    def _sizes(self) -> EncoderSizes:
        """Return the sizes of the network for counting and inference."""
        return EncoderSizes(
            vocabulary=self.vocabulary,
            context=self.context,
            classes=self.classes,
            texts=self.texts,
            attention=Nystrom(_LANDMARKS, _KERNEL),
        )

    def _training_sizes(self, recipe: LongRangeRecipe) -> EncoderSizes:
        """Return the sizes of the network for training by a recipe."""
        attention = Nystrom(recipe.landmarks, _KERNEL, recipe.scaling)
        return replace(self._sizes(), attention=attention, pooling=recipe.pooling, dropout=recipe.dropout)


class GeneratedTask(LongRangeTask):
    """A task that generates its data unless given. Generated data depends on the preset; given data is used whole."""

    @abstractmethod
    def generate(self, recipe: Any) -> TensorSplits:
        """Generate a recipe's data, or load it from the cache."""

    @abstractmethod
    def read(self, data: Path) -> TensorSplits:
        """Read the official files. Raises UserError if they are missing."""

    def load(self) -> TensorSplits:
        """Read the data that `--data` names, or generate that of the published recipe."""
        return self.generate(self.presets["paper"]) if self.data is None else self.read(self.data)

    def splits_for(self, recipe: LongRangeRecipe) -> TensorSplits:
        """Return the data generated for the recipe, or given data untruncated: a truncated list has another answer."""
        if self.data is None:
            return self.generate(recipe)
        splits = self.splits
        assert isinstance(splits, TensorSplits)
        return splits

    def prepare(self) -> None:
        """Read the given data. Generated data depends on the preset and is made later."""
        if self.data is not None:
            _ = self.splits


def splits_of(train: Batch, validation: Batch, test: Batch) -> TensorSplits:
    """Return splits of integer ids, [E, N] or [E, T, N], with answers [E]."""
    return TensorSplits(train, validation, test, encode=_long)


def pad_rows(rows: list[np.ndarray[Any, Any]], tokens: int, kind: torch.dtype) -> Tensor:
    """Return rows of ids as one tensor [E, N], truncated to `tokens` and padded on the right."""
    table = torch.full((len(rows), tokens), PADDING, dtype=kind)
    for place, row in zip(table.numpy(), rows, strict=True):
        place[: len(row)] = row[:tokens]
    return table


def byte_ids(text: bytes) -> np.ndarray[Any, Any]:
    """Return the ids of a text's bytes, [N]: each byte plus 1, as in TFDS's ByteTextEncoder."""
    return np.frombuffer(text, dtype=np.uint8).astype(np.int16) + 1


def group_majority(splits: TensorSplits, group: Callable[[Tensor], Tensor]) -> Columns:
    """Return the accuracy of the most frequent training answer among inputs of the same group.

    `group` maps inputs [E, ...] to integers from 0 on, [E].
    """
    inputs, answers = splits.train
    table = torch.zeros(int(group(inputs).max()) + 1, int(answers.max()) + 1, dtype=torch.long)
    table.index_put_((group(inputs).long(), answers), torch.ones_like(answers), accumulate=True)
    likeliest = table.argmax(dim=1)
    columns: Columns = {}
    for prefix, (inputs, answers) in (("", splits.validation), ("test_", splits.test)):
        groups = group(inputs).long().clamp(max=len(likeliest) - 1)
        right = (likeliest[groups] == answers).float()
        columns |= {prefix + name: value for name, value in means_and_errors({"accuracy": right}).items()}
    return columns


def _long(ids: Tensor) -> Tensor:
    return ids.long()


@lru_cache(maxsize=2)
def _truncate(splits: TensorSplits, tokens: int) -> TensorSplits:
    parts = ((ids[..., :tokens], answers) for ids, answers in (splits.train, splits.validation, splits.test))
    return splits_of(*parts)
