"""Layers that a condition scales, shifts and gates: adaLN-Zero (Peebles and Xie, 2023, section 3.2 and figure 3).

Shapes: B = batch, N = tokens, D = width, C = features of the condition, F = features of the layer's inputs.
"""

from dataclasses import replace
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.layers.norm import Norm
from search_spaces.support.count import Count, linear
from search_spaces.topologies.base import WITHOUT_LAYER_NORM, InputMode

BARE = Norm("layer-bare", 1e-6)
"""The norm before a modulated layer, without scale and shift: the condition provides them."""


class Modulation(nn.Module):
    """A linear map of silu(condition) to several vectors, initialized to 0."""

    def __init__(self, condition: int, vectors: int, features: int) -> None:
        super().__init__()
        self.vectors = vectors
        self.map = nn.Linear(condition, vectors * features)
        nn.init.zeros_(self.map.weight)
        nn.init.zeros_(self.map.bias)

    def forward(self, condition: Tensor) -> tuple[Tensor, ...]:
        """Map [B, C] to vectors, each [B, 1, features], shared by all tokens."""
        return self.map(F.silu(condition))[:, None].chunk(self.vectors, dim=-1)  # type: ignore[no-any-return]


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """Scale and shift normed features [B, N, F] by [B, 1, F]."""
    return x * (1 + scale) + shift


class AdaLNZero(nn.Module):
    """adaLN-Zero: gate(c) * layer((1 + scale(c)) * norm(x) + shift(c)), with a norm without scale and shift.

    Choices for input modes other than "shared": different inputs for queries, keys and values share scale and shift;
    normed inputs are not normed again; in head space the three vectors have the heads' features.

    Args:
        layer: An Attention or a FeedForward without norms.
        width: D.
        input_mode: The topology's input mode.
    """

    def __init__(self, layer: Any, width: int, input_mode: InputMode) -> None:
        super().__init__()
        self.site = replace(layer.site, takes_condition=True, norms_input=input_mode not in WITHOUT_LAYER_NORM)
        features = _features(layer.site.features, width, input_mode)
        self.norm = nn.Identity() if input_mode in WITHOUT_LAYER_NORM else BARE.build(features)
        self.modulation, self.gate = Modulation(width, 2, features), Modulation(width, 1, features)
        self.layer = layer

    def forward(self, *inputs: Tensor, condition: Tensor, **beside: Tensor) -> Tensor:
        """Map inputs [B, N, F] and a condition [B, D] to [B, N, F]; a mask is passed to the layer."""
        (gate,) = self.gate(condition)
        return gate * self.layer(*self._modulate(inputs, condition), **beside)  # type: ignore[no-any-return]

    def project(self, *inputs: Tensor, condition: Tensor) -> Any:
        """Return an attention layer's queries, keys and values."""
        return self.layer.project(*self._modulate(inputs, condition))

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, condition: Tensor) -> Tensor:
        """Attend and gate the output, after an attention layer's `project`."""
        (gate,) = self.gate(condition)
        return gate * self.layer.mix(q, k, v, mask)  # type: ignore[no-any-return]

    def _modulate(self, inputs: tuple[Tensor, ...], condition: Tensor) -> list[Tensor]:
        shift, scale = self.modulation(condition)
        return [modulate(self.norm(x), shift, scale) for x in inputs]


def count_modulation(features: int, width: int, input_mode: InputMode) -> Count:
    """Count what AdaLNZero adds to its layer for one example, in closed form."""
    return linear(width, 3 * _features(features, width, input_mode))


def _features(features: int, width: int, input_mode: InputMode) -> int:
    return features if input_mode == "heads" else width
