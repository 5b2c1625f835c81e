"""Encoders that say which tokens were masked: Crammed-BERT (Geiping and Goldstein, 2023), where the topology is resnet.

Shapes: B = batch, N = tokens, C = context (the most tokens there can be), V = vocabulary, D = width.
"""

import math

import torch
from torch import Tensor, nn

from search_spaces.architecture import Architecture
from search_spaces.count import Count, linear
from search_spaces.errors import UserError
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.embedding import Embedding
from search_spaces.layers.feed_forward import GEGLU
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer

CRAMMED = TransformerStyle(Norm("layer", 1e-12), GEGLU, attention_bias=False, feed_forward_bias=False, parts=1)


class ScaledWaves(Embedding):
    """A learned vector for each id, added to fixed waves of the position times one learned number, and normed.

    Feature 2 i of position n is sin(n / 10000^(2 i / D)), feature 2 i + 1 the cosine of the same; the number starts at
    1 / sqrt(D).
    """

    waves: Tensor

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.scale = nn.Parameter(torch.tensor(width**-0.5))
        self.norm = nn.LayerNorm(width, eps=CRAMMED.norm.eps)
        frequencies = torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        angles = torch.outer(torch.arange(context).float(), frequencies)  # [C, D / 2, rounded up]
        waves = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :width]
        self.register_buffer("waves", waves, persistent=False)

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Map [B, N] to one [B, N, D]."""
        return (self.norm(self.tokens(ids) + self.scale * self.waves[: ids.shape[-1]]),)


class MaskedEncoder(nn.Module):
    """Embeddings, a transformer stack that looks both ways, and scores of every token by the words' own embeddings."""

    def __init__(self, embedding: ScaledWaves, stack: Stack, head: nn.Linear, context: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.head = head
        self.context = context

    def forward(self, ids: Tensor, real: Tensor | None = None) -> Tensor:
        """Map ids [B, N] to logits [B, N, V]; `real` [B, N] is False where a token is padding.

        Raises:
            UserError: More tokens than the encoder has positions.
        """
        return self.head(self.features(ids, real))  # type: ignore[no-any-return]  # nn.Module returns Any

    def features(self, ids: Tensor, real: Tensor | None = None) -> Tensor:
        """What the head reads, [B, N, D]. Raises UserError as `forward`."""
        if ids.shape[-1] > self.context:
            raise UserError(f"the encoder has {self.context} positions, got {ids.shape[-1]} tokens. Shorten the text.")
        return self.stack(*self.embedding(ids), mask=real)  # type: ignore[no-any-return]  # nn.Module returns Any


def build_masked(architecture: Architecture, vocabulary: int, context: int) -> MaskedEncoder:
    """An encoder over `vocabulary` ids and at most `context` tokens: N(0, 0.02) everywhere.

    Raises:
        UserError: An architecture without heads, or one that its topology cannot wire.
    """
    stack = build_transformer(architecture, CRAMMED, lambda block: SoftmaxAttention(causal=False))
    embedding = ScaledWaves(vocabulary, context, architecture.width)
    head = nn.Linear(architecture.width, vocabulary, bias=False)
    head.weight = embedding.tokens.weight
    for module in (*stack.layers.modules(), embedding.tokens):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
    stack.topology.start(stack.layers)
    return MaskedEncoder(embedding, stack, head, context)


def count_masked(architecture: Architecture, vocabulary: int, context: int) -> Count:
    """Closed form of that network for one text of `context` tokens, all of which are scored."""
    width = architecture.width
    embedding = Count(params=vocabulary * width + 1 + CRAMMED.norm.params(width))
    head = linear(width, vocabulary, bias=False).times(context) + Count(params=-vocabulary * width)
    return embedding + count_transformer(architecture, CRAMMED, context) + head
