"""The position-wise feed-forward layer of a transformer block.

Shapes: ... = any leading axes, D = width, F = hidden features.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.count import Count, linear
from search_spaces.layers.norm import Norm
from search_spaces.topologies.base import Delivery, Site


class FeedForward(nn.Module):
    """down(gelu(up(norm(x)))), the second layer of its block. Inputs in head space come normed already."""

    def __init__(self, width: int, hidden: int, norm: Norm, delivers: Delivery, *, bias: bool) -> None:
        super().__init__()
        self.site = Site(("x",), width, opens_block=False)
        self.norm = nn.Identity() if delivers == "heads" else norm.build(width)
        self.up = nn.Linear(width, hidden, bias=bias)
        self.down = nn.Linear(hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., D] to [..., D]."""
        return self.down(F.gelu(self.up(self.norm(x))))  # type: ignore[no-any-return]  # nn.Module returns Any


def count_feed_forward(width: int, hidden: int, norm: Norm, delivers: Delivery, *, bias: bool) -> Count:
    """Closed form of a FeedForward layer at one position."""
    norms = Count(params=0 if delivers == "heads" else norm.params(width))
    return norms + linear(width, hidden, bias=bias) + linear(hidden, width, bias=bias)
