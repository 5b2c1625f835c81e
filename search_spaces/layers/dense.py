"""Dense layers with norm and swish, and the four-layer block of residual MLPs.

Shapes: ... = any leading axes, D = width, H = hidden features.
"""

import math
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.layers.norm import Norm
from search_spaces.support.count import Count, linear
from search_spaces.topologies.base import Site

LAYERS = 4
"""Dense layers of one block."""

NORM = Norm("layer", 1e-6)  # flax's default eps, used by the published networks


class DenseNormSwish(nn.Module):
    """A dense layer: swish(norm(W x + b))."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.dense = init_linear(nn.Linear(inputs, outputs))
        self.norm = NORM.build(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., inputs] to [..., outputs]."""
        return F.silu(self.norm(self.dense(x)))


class DenseBlock(nn.Module):
    """One block of four DenseNormSwish layers, D -> H -> H -> H -> D, without a skip inside.

    The published block has H = D. A topology's skip around it adds after the last swish (post-activation).
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.site = Site(("x",), width, starts_block=True)
        self.layers = nn.Sequential(*(DenseNormSwish(*sizes) for sizes in _sizes(width, hidden)))

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., D] to [..., D]."""
        return self.layers(x)  # type: ignore[no-any-return]  # nn.Module returns Any


def init_linear(layer: nn.Linear) -> nn.Linear:
    """Draw weights from U(-1 / sqrt(inputs), 1 / sqrt(inputs)), set the bias to 0, and return the layer.

    This is flax's variance_scaling(1/3, "fan_in", "uniform").
    """
    bound = 1 / math.sqrt(layer.in_features)
    nn.init.uniform_(layer.weight, -bound, bound)
    nn.init.zeros_(layer.bias)
    return layer


def count_dense(inputs: int, outputs: int) -> Count:
    """Count a DenseNormSwish layer at one position in closed form."""
    return linear(inputs, outputs) + Count(params=NORM.params(outputs))


def count_dense_block(width: int, hidden: int) -> Count:
    """Count a DenseBlock at one position in closed form."""
    return sum((count_dense(*sizes) for sizes in _sizes(width, hidden)), start=Count())


def _sizes(width: int, hidden: int) -> list[tuple[int, int]]:
    features = [width, *[hidden] * (LAYERS - 1), width]
    return list(pairwise(features))
