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
from search_spaces.topologies.base import WITHOUT_LAYER_NORM, InputMode, Site


@dataclass(frozen=True, slots=True)
class Activation:
    """The activation of a feed-forward layer.

    Attributes:
        function: Maps [..., maps * hidden] to [..., hidden].
        maps: Input features per output feature: 2 for gated activations.
        active_half: The half that is activated, 0 or 1; it multiplies the other.
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
"""The tanh approximation that GPT-2 was trained with."""
SWIGLU = Activation(_swiglu, maps=2)
"""silu(gate) * value (Shazeer, 2020), with the gate's features first."""
GEGLU = Activation(_geglu, maps=2, active_half=1)
"""value * gelu(gate) (Shazeer, 2020), with the gate's features last."""


class FeedForward(nn.Module):
    """A feed-forward layer down(activation(up(norm(x)))), the second layer of its block.

    With `norm=None` or an input mode of WITHOUT_LAYER_NORM it does not norm its input.
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
            ("x",), width, starts_block=False, norms_input=norm is not None and input_mode not in WITHOUT_LAYER_NORM
        )
        self.norm = nn.Identity() if norm is None or input_mode in WITHOUT_LAYER_NORM else norm.build(width)
        output_rows = slice(activation.active_half * hidden, (activation.active_half + 1) * hidden)
        self.up = FusedLinear(width, activation.maps * hidden, bias=bias, output_rows=output_rows)
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
    """Count a FeedForward layer at one position in closed form."""
    norms = Count(params=0 if input_mode in WITHOUT_LAYER_NORM else norm.params(width))
    return norms + linear(width, activation.maps * hidden, bias=bias) + linear(hidden, width, bias=bias)
