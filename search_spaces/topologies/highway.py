"""Highway transformers: beside each layer, the stream is gated by itself.

Shapes: ... = any leading axes, D = width.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count, linear
from search_spaces.support.lecun_init import init_lecun
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import Topology, Wiring, sum_tensors

Form = Literal["tanh", "sigmoid", "highway"]


@dataclass(frozen=True, slots=True)
class HighwayOptions:
    """What the gates do.

    Attributes:
        form: "tanh" and "sigmoid" add a gated map to the skip; "highway" has the map in place of part of the skip.
        initial: How maps are drawn: "normal", or "lecun" as in Mak and Flanigan's comparison (2025, C.4).
    """

    form: Form = "tanh"
    initial: Literal["normal", "lecun"] = "normal"


class Gate(nn.Module):
    """The two maps of one layer: W_1 x + b_1, which gates, and W_2 x + b_2, which is gated."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(width, width), nn.Linear(width, width)
        for linear_map in (self.gate, self.value):
            nn.init.normal_(linear_map.weight, std=0.02)
            nn.init.zeros_(linear_map.bias)

    def forward(self, x: Tensor, form: Form) -> Tensor:
        """What stands in place of the skip x, [..., D]."""
        gate: Tensor = self.gate(x)
        value: Tensor = self.value(x)
        match form:
            case "tanh":
                return x + torch.tanh(gate) * value
            case "sigmoid":
                return x + torch.sigmoid(gate) * value
            case "highway":
                return x + torch.sigmoid(gate) * (value - x)


@final
class Highway(Topology):
    """Highway transformer (Chai et al., 2020): beside each layer's skip a gated map of what it reads.

    x_{t+1} = f_t(x_t) + x_t + act(W_1 x_t + b_1) * (W_2 x_t + b_2), feature by feature; act is tanh or the sigmoid.

    With `form=highway`, T = sigmoid(W_1 x_t + b_1) and x_{t+1} = f_t(x_t) + (1 - T) * x_t + T * (W_2 x_t + b_2). W and
    b are each layer's own. The state is x, [..., D].

    Source: Chai, Jin and Hou, Highway Transformer (arXiv 2004.08178, 2020): self-dependency units, which are the first
    two forms, and the highway gate; and the official code, which has all three. Readings taken:

    * The gates read x_t as it is, not normed: so does the code, both where layers norm what they read and where they
      norm what they leave. Its scripts take the latter, so that there x_t comes normed; here it does not.
    * W is drawn from N(0, 0.02^2) and b is 0, which is how the code draws all its maps; with `initial=lecun` from
      N(0, 1 / D). T is then near 1/2 at the start, where highway networks (Srivastava et al., 2015) have a negative b
      to begin near the skip. In no form is this the residual network at the start.
    * Matrices are weight-decayed as layers' are; the code has no weight decay.

    Since what the gates read is not normed, the stream grows with depth: at width 512 and before training to 2 behind
    12 blocks and 10^4 behind 64 with tanh, 200 with the sigmoid. With `form=highway` it does not.

    Parameters: `layers * 2 * (width + 1) * width`
    """

    Options: ClassVar[type] = HighwayOptions
    axes: ClassVar[Axes] = {"form": ("tanh", "sigmoid", "highway")}
    in_joint_spaces: ClassVar[bool] = False

    def __init__(self, wiring: Wiring, options: HighwayOptions) -> None:
        super().__init__()
        self.form: Form = options.form
        self.gates = nn.ModuleList(Gate(wiring.width) for _ in wiring.sites)
        if options.initial == "lecun":
            init_lecun(self.modules())

    @classmethod
    def count(cls, wiring: Wiring, options: HighwayOptions) -> Count:
        """Two maps for each layer; a product and two additions, or three products, as 1 - T is one, and two."""
        width = wiring.width
        maps = linear(width, width).repeat(2)
        return (maps + Count(elementwise=(5 if options.form == "highway" else 3) * width)).repeat(len(wiring.sites))

    def open(self, *parts: Tensor) -> Tensor:
        """Start from x_0, the sum of the embeddings."""
        return sum_tensors(parts)

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Give x_t to all ports."""
        return (state,), state

    def recomputes(self, t: int) -> Literal["read", "write"]:
        """Where its gates are."""
        return "write"

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        """Add the layer's output to what the gates make of x_t."""
        skip: Tensor = self.gates[t](state, self.form)
        return skip + y

    def close(self, state: Tensor) -> Tensor:
        """Return x_L."""
        return state
