"""Masked language models: Crammed-BERT (Geiping and Goldstein, 2023) if the topology is resnet.

Shapes: B = batch, N = tokens, C = context (maximum number of tokens), V = vocabulary, D = width.
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
from search_spaces.models.text_networks import check_length, get_style
from search_spaces.support.count import Count, linear

_NORM = Norm("layer", 1e-12)
_LAYERS = TransformerStyle(_NORM, GEGLU, attention_bias=False, feed_forward_bias=False, num_embeddings=1)


class NormedTokens(Embedding):
    """A learned, normed vector per id, without positions."""

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.norm = _NORM.build(width)

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Map [B, N] to one [B, N, D]."""
        return (self.norm(self.tokens(ids)),)


class ScaledWaves(NormedTokens):
    """NormedTokens with sinusoidal positions, scaled by a learned number and added before the norm.

    Feature 2 i of position n is sin(n / 10000^(2 i / D)), feature 2 i + 1 its cosine. The number starts at 1 / sqrt(D).
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
    """Embeddings, a bidirectional transformer stack, and logits of every token from the tied embeddings."""

    def __init__(self, embedding: NormedTokens, stack: Stack, head: nn.Linear, context: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.head = head
        self.context = context

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map ids [B, N] to logits [B, N, V]; a mask [B, N] is False for padding.

        Raises:
            UserError: More tokens than the encoder has positions.
        """
        return self.head(self.features(ids, mask))  # type: ignore[no-any-return]  # nn.Module returns Any

    def features(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the input of the head, [B, N, D]. Raises UserError as `forward`."""
        check_length(ids, self.context, "encoder")
        return self.stack(*self.embedding(ids), mask=mask)  # type: ignore[no-any-return]  # nn.Module returns Any


Attend = Callable[[int], nn.Module]


@dataclass(frozen=True, slots=True)
class MaskedStyle:
    """The position encoding of a masked encoder.

    Attributes:
        embedding: Built from vocabulary, context and width.
        attend: Maps the architecture and the context to the attention of each block.
        positions: Number of parameters of the position encoding.
    """

    embedding: Callable[[int, int, int], NormedTokens]
    attend: Callable[[Architecture, int], Attend]
    positions: int


def build_masked(
    architecture: Architecture, style: str, vocabulary: int, context: int, *, dropout: float = 0.0
) -> MaskedEncoder:
    """Build an encoder over `vocabulary` ids and at most `context` tokens; weights are drawn from N(0, 0.02^2).

    `dropout` is the dropout rate, on each layer's output and inside feed-forward layers.

    Raises:
        UserError: An unknown style, an architecture without heads, or one that its topology cannot be used with.
    """
    parts = get_style(MASKED_STYLES, style)
    stack = build_transformer(architecture, replace(_LAYERS, dropout=dropout), parts.attend(architecture, context))
    embedding = parts.embedding(vocabulary, context, architecture.width)
    head = nn.Linear(architecture.width, vocabulary, bias=False)
    head.weight = embedding.tokens.weight
    for module in (*stack.layers.modules(), embedding.tokens):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
    stack.topology.init_layers(stack.layers)
    return MaskedEncoder(embedding, stack, head, context)


def count_masked(architecture: Architecture, style: str, vocabulary: int, context: int) -> Count:
    """Count `build_masked` in closed form, for one text of `context` tokens with all logits. Raises as it does."""
    width = architecture.width
    embedding = Count(params=vocabulary * width + get_style(MASKED_STYLES, style).positions + _NORM.params(width))
    head = linear(width, vocabulary, bias=False).at_positions(context) + Count(params=-vocabulary * width)
    return embedding + count_transformer(architecture, _LAYERS, context) + head


def _softmax(architecture: Architecture, context: int) -> Attend:
    return lambda block: SoftmaxAttention(causal=False)


MASKED_STYLES: Mapping[str, MaskedStyle] = {
    # Geiping and Goldstein (2023) and their code.
    "crammed-bert": MaskedStyle(ScaledWaves, _softmax, positions=1),
    # As above with rotary positions, an option of that code. With sinusoidal positions, a network of width 128 had
    # learned nothing of a token's neighbors after 6,000 steps of 8 rows. With rotary positions it had after 1,000 steps
    # of 4 rows.
    "crammed-bert-rotary": MaskedStyle(NormedTokens, partial(rotary_by_block, causal=False), positions=0),
}
