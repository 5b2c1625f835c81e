"""Fine-tuning on one set of GLUE: a pre-trained encoder with a classification head.

Shapes: E = examples, B = batch, N = tokens, D = width, C = outputs of a set's network.
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
"""Width of the pooling layer, whatever the encoder's width."""


class TextClassifier(nn.Module):
    """An encoder, the mean over its tokens, a linear layer with tanh, dropout, and a linear output.

    The cramming code (Geiping and Goldstein, 2023) has the mean in its architecture, but evaluates GLUE with the first
    token. Rows here have no token of their own at the start, so this takes the mean.
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
        """Map ids [B, N] and the mask `real` of tokens that are not padding [B, N] to [B, C]."""
        features = self.encoder.features(ids, real)  # [B, N, D]
        mean = (features * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
        return self.answer(self.drop(self.pool(mean).tanh()))  # type: ignore[no-any-return]  # nn.Module returns Any


@final
class FineTuning(SupervisedTask):
    """The stage of a GLUE task that fine-tunes an encoder on one set; not a registered task.

    Args:
        pretraining: The task that the encoder was trained on.
        weights: The encoder's weights, by the names of that task's network.
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
        return self.given_splits

    def fingerprint(self, recipe: GlueRecipe) -> str:
        """Return hex digits of the rows, the set's format and the weights."""
        parts = self.given_splits.fingerprint, repr(self.glue_set), fingerprint(self.weights)
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def build(self, architecture: Architecture) -> nn.Module:
        """Build the classifier with initial weights and no dropout."""
        return self._network(architecture, dropout=0.0)

    def build_for_training(self, architecture: Architecture, recipe: GlueRecipe) -> nn.Module:
        """Build the classifier with dropout and the given encoder weights."""
        network = self._network(architecture, recipe.dropout)
        load_weights(network.encoder, self.weights, "the trained encoder")
        return network

    def example(self) -> tuple[Tensor, Tensor]:
        """Return one text as long as the encoder's context."""
        return torch.zeros(1, self.pretraining.context, dtype=torch.long), torch.ones(1, self.pretraining.context) > 0

    def loss(self, outputs: Tensor, targets: Mapping[str, Tensor], recipe: GlueRecipe) -> Tensor:
        """Return the cross-entropy, or the mean squared error for regression, of [B, C] and [B]."""
        if self.glue_set.labels:
            return F.cross_entropy(outputs, targets["answer"].long(), label_smoothing=recipe.label_smoothing)
        return F.mse_loss(outputs[:, 0], targets["answer"].to(outputs.dtype))

    def measure(self, outputs: Tensor, targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return prediction, answer, group and document, each [B]."""
        return {"predicted": outputs.argmax(dim=1) if self.glue_set.labels else outputs[:, 0], **targets}

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """Return the set's scores with jackknife standard errors."""
        arrays = {name: values.numpy() for name, values in measures.items()}
        return score_columns(self.glue_set, arrays)

    def _network(self, architecture: Architecture, dropout: float) -> TextClassifier:
        pretraining = self.pretraining
        encoder = build_masked(
            architecture, pretraining.style, pretraining.vocabulary, pretraining.context, dropout=dropout
        )
        return TextClassifier(encoder, architecture.width, self.glue_set.outputs, dropout)
