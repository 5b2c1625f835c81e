"""Embeddings of token ids, with and without positions.

Shapes: B = batch, N = tokens, C = context (maximum number of tokens), V = vocabulary, D = width.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor, nn


class Embedding(nn.Module, ABC):
    """Base class of embeddings of token ids. A subclass takes (vocabulary, context, width).

    Attributes:
        tokens: The vector of each id.
    """

    tokens: nn.Embedding

    @abstractmethod
    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Map ids [B, N] to embeddings, each [B, N, D] or [N, D], whose sum is the network's input."""


@final
class Tokens(Embedding):
    """A learned vector per id, without positions."""

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Map [B, N] to one [B, N, D]."""
        return (self.tokens(ids),)


@final
class TokensAndPositions(Embedding):
    """A learned vector per id, and one per position."""

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(context, width))

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Map [B, N] to tokens [B, N, D] and positions [N, D]; their sum is the embedding."""
        return self.tokens(ids), self.positions[: ids.shape[-1]]


@final
class SinusoidalPositions(Embedding):
    """A learned vector per id plus sinusoidal positions (Vaswani et al., 2017, section 3.5).

    The first half of the features are sines and the second cosines, of angles n / 10000^(i / (D/2 - 1)) at position n,
    as in flax's examples. An odd last feature is 0.
    """

    waves: Tensor

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        half = width // 2
        frequencies = 1e4 ** -(torch.arange(half) / max(1, half - 1))
        angles = torch.outer(torch.arange(context).float(), frequencies)  # [C, D / 2]
        waves = torch.cat((angles.sin(), angles.cos(), torch.zeros(context, width - 2 * half)), dim=1)
        self.register_buffer("waves", waves, persistent=False)

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Map [B, N] to one [B, N, D]."""
        return (self.tokens(ids) + self.waves[: ids.shape[-1]],)
