"""The encoder of the Long Range Arena, following Nyströmformer: token ids to class scores.

Shapes: B = batch, T = texts per example, N = tokens, D = width.
"""

import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention, count_softmax
from search_spaces.layers.embedding import TokensAndPositions
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.nystrom import Nystrom
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.models.text_networks import check_length
from search_spaces.support.count import Count, linear
from search_spaces.support.errors import Notice

Pooling = Literal["tokens", "positions"]

PADDING = 0
"""The id of padding."""

LRA = TransformerStyle(Norm("layer", 1e-5), GELU, attention_bias=True, feed_forward_bias=True, num_embeddings=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSizes:
    """Sizes and choices of an encoder that its task sets.

    Attributes:
        vocabulary: Number of ids, including 0 for padding.
        context: Maximum number of tokens of a text.
        classes: Number of class scores.
        texts: Texts per example: 1, or 2 that are compared, encoded with shared weights.
        hidden: Hidden features of the classifier.
        attention: Nyström attention, or None for exact softmax attention.
        pooling: "tokens" averages features over a text's tokens, "positions" divides their sum by the padded length.
        dropout: Dropout rate, on the embedding, on each layer's output and inside feed-forward layers.

    Raises:
        ValueError: The number of texts is not 1 or 2.
    """

    vocabulary: int
    context: int
    classes: int
    texts: int = 1
    hidden: int = 128
    attention: Nystrom | None = None
    pooling: Pooling = "tokens"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.texts not in (1, 2):
            raise ValueError(f"an example must have 1 or 2 texts, got {self.texts}.")


class PairFeatures(nn.Module):
    """Features (a, b, a * b, a - b) of two texts' features a and b."""

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, 2, D] to [B, 4 D]."""
        a, b = x.unbind(1)
        return torch.cat((a, b, a * b, a - b), dim=-1)


class Encoder(nn.Module):
    """Token and position embeddings, a transformer stack, mean pooling over a text's tokens, and a classifier.

    Padding has id 0 and may be anywhere in a text. With exact attention, padding at the end does not change the scores.
    With Nyström attention it lengthens the landmarks' segments, but its contents are ignored.

    Source: Xiong et al., Nyströmformer (2021), code for the Long Range Arena. That code divides the sum over tokens by
    the padded length (`pooling="positions"`), so features scale with a text's length.
    """

    def __init__(self, embedding: TokensAndPositions, stack: Stack, head: nn.Module, sizes: EncoderSizes) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.head = head
        self.context = sizes.context
        self.pooling = sizes.pooling
        self.drop = nn.Dropout(sizes.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids [B, N], or [B, 2, N] for two texts, to scores [B, classes].

        Raises:
            UserError: More tokens than the encoder has positions.
        """
        check_length(ids, self.context, "encoder")
        texts = ids.flatten(0, -2)  # [B T, N]
        real = texts != PADDING
        words, positions = self.embedding(texts)
        dropout_mask = self.drop(torch.ones_like(words))  # one mask for both terms drops features of their sum
        features = self.stack(words * dropout_mask, positions * dropout_mask, mask=real)
        length = real.sum(1).clamp(min=1)[:, None, None] if self.pooling == "tokens" else texts.shape[1]
        weight = real[..., None] / length  # [B T, N, 1]
        text_features = (features * weight).sum(1).unflatten(0, (ids.shape[0], -1))  # [B, T, D]
        return self.head(text_features)  # type: ignore[no-any-return]  # nn.Module returns Any


def build_encoder(architecture: Architecture, sizes: EncoderSizes) -> Encoder:
    """Build an encoder: embeddings from N(0, 0.02^2), linear maps as torch initializes them.

    Raises:
        UserError: An architecture without heads, or one that its topology cannot be used with.
    """
    heads, nystrom = architecture.by_block("heads"), sizes.attention
    if nystrom is not None and nystrom.padding(sizes.context):
        _warn_padding(nystrom.landmarks, sizes.context, nystrom.padding(sizes.context))
    stack = build_transformer(
        architecture,
        replace(LRA, dropout=sizes.dropout),
        lambda block: SoftmaxAttention(causal=False) if nystrom is None else nystrom.build(heads[block]),
    )
    embedding = TokensAndPositions(sizes.vocabulary, sizes.context, architecture.width)
    for table in embedding.parameters():
        nn.init.normal_(table, std=0.02)
    features = architecture.width * (1 if sizes.texts == 1 else 4)
    head = nn.Sequential(
        nn.Flatten() if sizes.texts == 1 else PairFeatures(),
        nn.Linear(features, sizes.hidden),
        nn.ReLU(),
        nn.Linear(sizes.hidden, sizes.classes),
    )
    return Encoder(embedding, stack, head, sizes)


def count_encoder(architecture: Architecture, sizes: EncoderSizes, tokens: int) -> Count:
    """Count `build_encoder` in closed form, for one example whose texts have `tokens`, including padding.

    Raises:
        UserError: The topology is unknown.
    """
    width = architecture.width
    attend = count_softmax if sizes.attention is None else sizes.attention.count
    tower = count_transformer(architecture, LRA, tokens, attend)
    features = width * (1 if sizes.texts == 1 else 4)
    head = linear(features, sizes.hidden) + linear(sizes.hidden, sizes.classes)
    return Count(params=(sizes.vocabulary + sizes.context) * width) + tower.at_positions(sizes.texts) + head


@cache  # once per process
def _warn_padding(landmarks: int, context: int, padding: int) -> None:
    message = f"{landmarks} landmarks do not divide {context} tokens: {padding} masked positions are appended."
    sizes = {"context": context, "padding": padding}
    warnings.warn(Notice("skipped", message, option="landmarks", value=landmarks, **sizes), stacklevel=3)
