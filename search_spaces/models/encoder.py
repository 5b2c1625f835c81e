"""The encoder of the Long Range Arena, as Nyströmformer has it: token ids to the scores of classes.

Shapes: B = batch, T = texts of an example, N = tokens, D = width.
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
from search_spaces.support.count import Count, linear
from search_spaces.support.errors import Notice, UserError

Pooling = Literal["tokens", "positions"]

PADDING = 0
"""The id of no token."""

LRA = TransformerStyle(Norm("layer", 1e-5), GELU, attention_bias=True, feed_forward_bias=True, parts=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSizes:
    """What of an encoder its task fixes.

    Attributes:
        vocabulary: How many ids there are, 0 among them, which is padding.
        context: The most tokens a text can have.
        classes: How many scores come out.
        texts: How many texts an example has: 1, or 2 that are compared, read by the same tower.
        hidden: Features inside the classifier.
        attention: Nyström attention, or None for exact softmax attention.
        pooling: Whether features are the mean over a text's tokens, or their sum over its padded length.
        dropout: Share of features dropped while training: of the embedding, of each layer's output, and inside
            feed-forward layers.

    Raises:
        UserError: Another number of texts.
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
            raise ValueError(f"an example has 1 text or 2, got {self.texts}.")


class PairFeatures(nn.Module):
    """Two texts' features a and b as (a, b, a * b, a - b)."""

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, 2, D] to [B, 4 D]."""
        a, b = x.unbind(1)
        return torch.cat((a, b, a * b, a - b), dim=-1)


class Encoder(nn.Module):
    """Word and position embeddings, a transformer stack, the mean over a text's tokens, and a classifier.

    Padding stands anywhere in a text and is id 0. With exact attention, scores are those of the text without the
    padding behind it; with Nyström attention padding lengthens the landmarks' segments, but what it holds is not seen.

    Source: Xiong et al., Nyströmformer (2021), code for the Long Range Arena. That code divides the sum over tokens by
    the padded length (`pooling="positions"`), and so lets a text's length scale its features.
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
        """Map ids [B, N], or [B, 2, N] of two texts, to scores [B, classes].

        Raises:
            UserError: More tokens than the encoder has positions.
        """
        if (tokens := ids.shape[-1]) > self.context:
            message = f"the encoder has {self.context} positions, got {tokens} tokens. Shorten the text."
            raise UserError("too-large", message, option="tokens", value=tokens, most=self.context)
        texts = ids.flatten(0, -2)  # [B T, N]
        real = texts != PADDING
        words, positions = self.embedding(texts)
        dropout_mask = self.drop(torch.ones_like(words))  # dropping both alike is dropping features of their sum
        features = self.stack(words * dropout_mask, positions * dropout_mask, mask=real)
        length = real.sum(1).clamp(min=1)[:, None, None] if self.pooling == "tokens" else texts.shape[1]
        weight = real[..., None] / length  # [B T, N, 1]
        text_features = (features * weight).sum(1).unflatten(0, (ids.shape[0], -1))  # [B, T, D]
        return self.head(text_features)  # type: ignore[no-any-return]  # nn.Module returns Any


def build_encoder(architecture: Architecture, sizes: EncoderSizes) -> Encoder:
    """An encoder: embeddings N(0, 0.02), linear maps as torch draws them.

    Raises:
        UserError: An architecture without heads, or one that its topology cannot wire.
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
    """Closed form of that network for one example whose texts have `tokens`, padding included.

    Raises:
        UserError: The topology is unknown.
    """
    width = architecture.width
    attend = count_softmax if sizes.attention is None else sizes.attention.count
    tower = count_transformer(architecture, LRA, tokens, attend)
    features = width * (1 if sizes.texts == 1 else 4)
    head = linear(features, sizes.hidden) + linear(sizes.hidden, sizes.classes)
    return Count(params=(sizes.vocabulary + sizes.context) * width) + tower.times(sizes.texts) + head


@cache  # once a process, however many networks are built
def _warn_padding(landmarks: int, context: int, padding: int) -> None:
    message = f"{landmarks} landmarks do not divide {context} tokens: {padding} masked positions are put behind them."
    sizes = {"context": context, "padding": padding}
    warnings.warn(Notice("skipped", message, option="landmarks", value=landmarks, **sizes), stacklevel=3)
