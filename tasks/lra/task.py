"""What the tasks of the Long Range Arena share: an encoder of tokens, the mean of which is classified.

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
from tasks.training.supervised import means

_LANDMARKS, _KERNEL = 64, 35
"""Of the published Nyström attention."""

Columns = dict[str, float]


class LongRangeTask(ClassificationTask):
    """Classify a sequence, or a pair of them.

    Networks are Nyströmformer's for the Long Range Arena (2 layers, 2 heads of 32, 64 features), and they are counted
    at the published length whatever the preset: parameters include every position, FLOPs those of `context` tokens.

    Attributes:
        vocabulary: Ids there are; 0 is padding.
        context: Positions of the network.
        classes: How many there are.
        texts: How many sequences an example has.
    """

    vocabulary: ClassVar[int] = 512
    context: ClassVar[int]
    classes: ClassVar[int]
    texts: ClassVar[int] = 1
    base = Architecture(depth=2, width=64, heads=2, head_dim=32, hidden=128)
    presets: ClassVar[Mapping[str, LongRangeRecipe]]

    @abstractmethod
    def load(self) -> TensorSplits:
        """Read the data: ids [E, N], or [E, T, N], as `splits_of` takes them. Raises UserError where it is not."""

    def splits_for(self, recipe: LongRangeRecipe) -> TensorSplits:
        """The data, its sequences cut to the recipe's tokens."""
        splits = self.splits
        assert isinstance(splits, TensorSplits)
        return _truncate(splits, recipe.tokens)

    def build(self, architecture: Architecture) -> nn.Module:
        """An encoder, [B, N] or [B, T, N] to [B, classes]."""
        return build_encoder(architecture, self._sizes())

    def build_for_training(self, architecture: Architecture, recipe: LongRangeRecipe) -> nn.Module:
        """The same with the recipe's landmarks, their scaling, pooling and dropout."""
        return build_encoder(architecture, self._training_sizes(recipe))

    def example(self) -> tuple[Tensor, ...]:
        """One sequence of as many tokens as the network has positions, or one pair."""
        shape = (1, self.context) if self.texts == 1 else (1, self.texts, self.context)
        return (torch.ones(shape, dtype=torch.long),)

    def closed_form(self, architecture: Architecture) -> Count:
        """Of that encoder, for the example."""
        return count_encoder(architecture, self._sizes(), self.context)

    def baselines(self, recipe: Any) -> Mapping[str, Columns]:
        """What is reached by always giving the answer that is the most frequent in training."""
        splits = self.splits_for(recipe)
        return {"majority class": group_majority(splits, lambda inputs: torch.zeros(len(inputs)))}

    def _sizes(self) -> EncoderSizes:
        """Of the network as it is counted, and used once it is trained."""
        return EncoderSizes(
            vocabulary=self.vocabulary,
            context=self.context,
            classes=self.classes,
            texts=self.texts,
            attention=Nystrom(_LANDMARKS, _KERNEL),
        )

    def _training_sizes(self, recipe: LongRangeRecipe) -> EncoderSizes:
        """Of the network as a recipe trains it."""
        attention = Nystrom(recipe.landmarks, _KERNEL, recipe.scaling)
        return replace(self._sizes(), attention=attention, pooling=recipe.pooling, dropout=recipe.dropout)


class GeneratedTask(LongRangeTask):
    """One whose data is made where none is given. Made data depends on the preset; given data is taken whole."""

    @abstractmethod
    def generate(self, recipe: Any) -> TensorSplits:
        """Make the data of a recipe, or find it in the cache."""

    @abstractmethod
    def read(self, data: Path) -> TensorSplits:
        """Read the official files. Raises UserError where they are not there."""

    def load(self) -> TensorSplits:
        """Read what `--data` names, or make what the published recipe is for."""
        return self.generate(self.presets["paper"]) if self.data is None else self.read(self.data)

    def splits_for(self, recipe: LongRangeRecipe) -> TensorSplits:
        """What is made for the recipe, or the whole of what was given: a cut list has another answer."""
        if self.data is None:
            return self.generate(recipe)
        splits = self.splits
        assert isinstance(splits, TensorSplits)
        return splits

    def prepare(self) -> None:
        """Read what was given. What is made is made for a preset, once that is known."""
        if self.data is not None:
            _ = self.splits


def splits_of(train: Batch, validation: Batch, test: Batch) -> TensorSplits:
    """Examples as ids of any integer kind, [E, N] or [E, T, N], with answers [E]."""
    return TensorSplits(train, validation, test, encode=_long)


def pad_rows(rows: list[np.ndarray[Any, Any]], tokens: int, kind: torch.dtype) -> Tensor:
    """Rows of ids in one tensor [E, N], cut at `tokens` and padded behind."""
    table = torch.full((len(rows), tokens), PADDING, dtype=kind)
    for place, row in zip(table.numpy(), rows, strict=True):
        place[: len(row)] = row[:tokens]
    return table


def byte_ids(text: bytes) -> np.ndarray[Any, Any]:
    """Ids of a text's bytes, [N]: each byte and 1, as TFDS's ByteTextEncoder has it."""
    return np.frombuffer(text, dtype=np.uint8).astype(np.int16) + 1


def group_majority(splits: TensorSplits, group: Callable[[Tensor], Tensor]) -> Columns:
    """Accuracy of the answer that is the most frequent in training among inputs of the same group.

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
        columns |= {prefix + name: value for name, value in means({"accuracy": right}).items()}
    return columns


def _long(ids: Tensor) -> Tensor:
    return ids.long()


@lru_cache(maxsize=2)
def _truncate(splits: TensorSplits, tokens: int) -> TensorSplits:
    parts = ((ids[..., :tokens], answers) for ids, answers in (splits.train, splits.validation, splits.test))
    return splits_of(*parts)
