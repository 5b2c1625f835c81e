"""One set of GLUE: an encoder that was trained on masked text, and a head that answers.

Shapes: E = examples, B = batch, N = tokens, D = width, C = numbers that a set's network gives.
"""

import hashlib
from collections.abc import Mapping
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import fingerprint, load_weights
from search_spaces.models.masked_encoder import MaskedEncoder, build_masked
from tasks.base import Metric
from tasks.data.splits import TensorSplits
from tasks.glue.recipe import GlueRecipe
from tasks.glue.sets import GlueSet
from tasks.glue.summary import score_columns
from tasks.language.masked import MaskedTask
from tasks.training.supervised import SupervisedTask

_POOL_WIDTH = 1024
"""Features between the mean over tokens and the answer, whatever the width."""


class TextClassifier(nn.Module):
    """An encoder, the mean over its tokens, a linear layer with tanh, dropout, and the answer.

    The cramming code (Geiping and Goldstein, 2023) has the mean in its architecture, but its evaluation of GLUE takes
    the first token. This is the mean: rows have no token of their own to begin with.
    """

    def __init__(self, encoder: MaskedEncoder, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.pool = nn.Linear(width, _POOL_WIDTH)
        self.drop = nn.Dropout(dropout)
        self.answer = nn.Linear(_POOL_WIDTH, outputs)
        for layer in (self.pool, self.answer):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Map ids [B, N], of which these are `real` [B, N], to [B, C]."""
        features = self.encoder.features(ids, real)  # [B, N, D]
        mean = (features * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
        return self.answer(self.drop(self.pool(mean).tanh()))  # type: ignore[no-any-return]  # nn.Module returns Any


@final
class FineTuning(SupervisedTask):
    """Answer the texts of one set, beginning with an encoder's weights. It is a stage of a task, and none of its own.

    Args:
        pretraining: The task that the encoder was trained on.
        weights: The encoder's, by the names of that task's network.
        glue_set: The set.
        splits: Its texts as rows of tokens.
    """

    name = "fine-tuning"
    version = 1
    metrics = (Metric("score", "share", "max"),)

    def __init__(
        self, pretraining: MaskedTask, weights: Mapping[str, Tensor], glue_set: GlueSet, splits: TensorSplits
    ) -> None:
        super().__init__()
        self.pretraining, self.weights, self.glue_set = pretraining, weights, glue_set
        self.given_splits = splits

    def load(self) -> TensorSplits:
        """The rows that were given."""
        return self.given_splits

    def fingerprint(self, recipe: GlueRecipe) -> str:
        """Of the rows, the set's form and the weights."""
        parts = self.given_splits.fingerprint, repr(self.glue_set), fingerprint(self.weights)
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def build(self, architecture: Architecture) -> nn.Module:
        """What answers, as it was drawn."""
        return self._network(architecture, dropout=0.0)

    def build_for_training(self, architecture: Architecture, recipe: GlueRecipe) -> nn.Module:
        """The same with dropout and the given weights."""
        network = self._network(architecture, recipe.dropout)
        load_weights(network.encoder, self.weights, "the trained encoder")
        return network

    def example(self) -> tuple[Tensor, Tensor]:
        """One text as long as the encoder's context."""
        return torch.zeros(1, self.pretraining.context, dtype=torch.long), torch.ones(1, self.pretraining.context) > 0

    def loss(self, outputs: Tensor, targets: Mapping[str, Tensor], recipe: GlueRecipe) -> Tensor:
        """Cross-entropy, or the mean of squares where the answer is a number: [B, C] and [B]."""
        if self.glue_set.labels:
            return F.cross_entropy(outputs, targets["answer"].long(), label_smoothing=recipe.label_smoothing)
        return F.mse_loss(outputs[:, 0], targets["answer"].to(outputs.dtype))

    def measure(self, outputs: Tensor, targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """What is predicted, the answer, its group and its document, each [B]."""
        return {"predicted": outputs.argmax(dim=1) if self.glue_set.labels else outputs[:, 0], **targets}

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """The set's scores, with standard errors by the jackknife."""
        arrays = {name: values.numpy() for name, values in measures.items()}
        return score_columns(self.glue_set, arrays)

    def _network(self, architecture: Architecture, dropout: float) -> TextClassifier:
        pretraining = self.pretraining
        encoder = build_masked(
            architecture, pretraining.style, pretraining.vocabulary, pretraining.context, dropout=dropout
        )
        return TextClassifier(encoder, architecture.width, self.glue_set.outputs, dropout)
