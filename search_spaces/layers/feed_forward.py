"""The position-wise feed-forward layer of a transformer block.

Shapes: ... = any leading axes, D = width, F = hidden features.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.layers.norm import Norm
from search_spaces.support.count import Count, linear
from search_spaces.support.fused_linear import FusedLinear
from search_spaces.topologies.base import PRENORMED, InputMode, Site


@dataclass(frozen=True, slots=True)
class Activation:
    """What stands between the two maps of a feed-forward layer.

    Attributes:
        function: Maps [..., maps * hidden] to [..., hidden].
        maps: Features it takes for each one it gives: 2 where one half gates the other.
        active_half: Which of these halves is activated, 0 or 1; the other multiplies it.
    """

    function: Callable[[Tensor], Tensor]
    maps: int = 1
    active_half: int = 0


def _swiglu(x: Tensor) -> Tensor:
    gate, value = x.chunk(2, dim=-1)
    return F.silu(gate) * value


def _geglu(x: Tensor) -> Tensor:
    value, gate = x.chunk(2, dim=-1)
    return value * F.gelu(gate)


RELU = Activation(F.relu)
GELU = Activation(F.gelu)
GELU_TANH = Activation(partial(F.gelu, approximate="tanh"))
"""The approximation by tanh that GPT-2 was trained with."""
SWIGLU = Activation(_swiglu, maps=2)
"""silu(gate) * value (Shazeer, 2020), the gate's features first."""
GEGLU = Activation(_geglu, maps=2, active_half=1)
"""value * gelu(gate) (Shazeer, 2020), the gate's features last."""


class FeedForward(nn.Module):
    """down(activation(up(norm(x)))), the second layer of its block. Inputs may be taken as they come (PRENORMED).

    Without a norm it takes inputs as they are.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        activation: Activation,
        norm: Norm | None,
        input_mode: InputMode,
        *,
        bias: bool,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.site = Site(
            ("x",), width, starts_block=False, norms_input=norm is not None and input_mode not in PRENORMED
        )
        self.norm = nn.Identity() if norm is None or input_mode in PRENORMED else norm.build(width)
        carrying = slice(activation.active_half * hidden, (activation.active_half + 1) * hidden)
        self.up = FusedLinear(width, activation.maps * hidden, bias=bias, carrying=carrying)
        self.activation = activation.function
        self.down = nn.Linear(hidden, width, bias=bias)
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., D] to [..., D]."""
        hidden = self.drop(self.activation(self.up(self.norm(x))))  # [..., F]
        return self.drop(self.down(hidden))  # type: ignore[no-any-return]  # nn.Module returns Any


def count_feed_forward(
    width: int, hidden: int, activation: Activation, norm: Norm, input_mode: InputMode, *, bias: bool
) -> Count:
    """Closed form of a FeedForward layer at one position."""
    norms = Count(params=0 if input_mode in PRENORMED else norm.params(width))
    return norms + linear(width, activation.maps * hidden, bias=bias) + linear(hidden, width, bias=bias)
