"""Encoders that say which tokens were masked: Crammed-BERT (Geiping and Goldstein, 2023), where the topology is resnet.

Shapes: B = batch, N = tokens, C = context (the most tokens there can be), V = vocabulary, D = width.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.embedding import Embedding
from search_spaces.layers.feed_forward import GEGLU
from search_spaces.layers.norm import Norm
from search_spaces.layers.rotary import rotary_by_block
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.support.count import Count, linear
from search_spaces.support.errors import UserError, unknown

_NORM = Norm("layer", 1e-12)
_LAYERS = TransformerStyle(_NORM, GEGLU, attention_bias=False, feed_forward_bias=False, parts=1)


class NormedTokens(Embedding):
    """A learned vector for each id, normed; positions are for attention to tell."""

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.norm = _NORM.build(width)

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Map [B, N] to one [B, N, D]."""
        return (self.norm(self.tokens(ids)),)


class ScaledWaves(NormedTokens):
    """The same with fixed waves of the position, times one learned number, added before the norm.

    Feature 2 i of position n is sin(n / 10000^(2 i / D)), feature 2 i + 1 the cosine of the same; the number starts at
    1 / sqrt(D).
    """

    waves: Tensor

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__(vocabulary, context, width)
        self.scale = nn.Parameter(torch.tensor(width**-0.5))
        frequencies = torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        angles = torch.outer(torch.arange(context).float(), frequencies)  # [C, D / 2, rounded up]
        waves = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :width]
        self.register_buffer("waves", waves, persistent=False)

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Map [B, N] to one [B, N, D]."""
        return (self.norm(self.tokens(ids) + self.scale * self.waves[: ids.shape[-1]]),)


class MaskedEncoder(nn.Module):
    """Embeddings, a transformer stack that looks both ways, and scores of every token by the words' own embeddings."""

    def __init__(self, embedding: NormedTokens, stack: Stack, head: nn.Linear, context: int) -> None:
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
        if (tokens := ids.shape[-1]) > self.context:
            message = f"the encoder has {self.context} positions, got {tokens} tokens. Shorten the text."
            raise UserError("too-large", message, option="tokens", value=tokens, most=self.context)
        return self.stack(*self.embedding(ids), mask=real)  # type: ignore[no-any-return]  # nn.Module returns Any


Attend = Callable[[int], nn.Module]


@dataclass(frozen=True, slots=True)
class MaskedStyle:
    """How a masked encoder tells positions.

    Attributes:
        embedding: Made with vocabulary, context and width.
        attend: Given the architecture and context, says what attends in each block.
        positions: Parameters that this takes.
    """

    embedding: Callable[[int, int, int], NormedTokens]
    attend: Callable[[Architecture, int], Attend]
    positions: int


def build_masked(
    architecture: Architecture, style: str, vocabulary: int, context: int, *, dropout: float = 0.0
) -> MaskedEncoder:
    """An encoder over `vocabulary` ids and at most `context` tokens: N(0, 0.02) everywhere.

    `dropout` is the share of features dropped while training: of each layer's output, and inside feed-forward layers.

    Raises:
        UserError: An unknown style, an architecture without heads, or one that its topology cannot wire.
    """
    parts = _get_style(style)
    stack = build_transformer(architecture, replace(_LAYERS, dropout=dropout), parts.attend(architecture, context))
    embedding = parts.embedding(vocabulary, context, architecture.width)
    head = nn.Linear(architecture.width, vocabulary, bias=False)
    head.weight = embedding.tokens.weight
    for module in (*stack.layers.modules(), embedding.tokens):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
    stack.topology.start(stack.layers)
    return MaskedEncoder(embedding, stack, head, context)


def count_masked(architecture: Architecture, style: str, vocabulary: int, context: int) -> Count:
    """Closed form of that network for one text of `context` tokens, all of them scored. Raises as `build_masked`."""
    width = architecture.width
    embedding = Count(params=vocabulary * width + _get_style(style).positions + _NORM.params(width))
    head = linear(width, vocabulary, bias=False).times(context) + Count(params=-vocabulary * width)
    return embedding + count_transformer(architecture, _LAYERS, context) + head


def _get_style(name: str) -> MaskedStyle:
    if name not in MASKED_STYLES:
        raise unknown("style", name, MASKED_STYLES)
    return MASKED_STYLES[name]


def _softmax(architecture: Architecture, context: int) -> Attend:
    return lambda block: SoftmaxAttention(causal=False)


MASKED_STYLES: Mapping[str, MaskedStyle] = {
    # Geiping and Goldstein (2023) and their code.
    "crammed-bert": MaskedStyle(ScaledWaves, _softmax, positions=1),
    # The same with rotary positions, an option of that code. A network of width 128 with waves has learnt nothing of a
    # token's neighbours after 6,000 steps of 8 rows, and with these it has after 1,000 of 4.
    "crammed-bert-rotary": MaskedStyle(NormedTokens, partial(rotary_by_block, causal=False), positions=0),
}
