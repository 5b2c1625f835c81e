"""Highway transformers: besides each layer, a gated map of the stream.

Shapes: ... = any leading axes, D = width.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count, linear
from search_spaces.support.lecun_init import init_lecun
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import StackSpec
from search_spaces.topologies.single_stream import SingleStreamTopology

Form = Literal["tanh", "sigmoid", "highway"]


@dataclass(frozen=True, slots=True)
class HighwayOptions:
    """The form and initialization of the gates.

    Attributes:
        form: "tanh" and "sigmoid" add a gated map to the skip; "highway" replaces part of the skip by the map.
        initial: Initialization of weights: "normal", or "lecun" as in Mak and Flanigan's comparison (2025, C.4).
    """

    form: Form = "tanh"
    initial: Literal["normal", "lecun"] = "normal"


class Gate(nn.Module):
    """The two maps of one layer: the gate W_1 x + b_1, and the gated value W_2 x + b_2."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(width, width), nn.Linear(width, width)
        for linear_map in (self.gate, self.value):
            nn.init.normal_(linear_map.weight, std=0.02)
            nn.init.zeros_(linear_map.bias)

    def forward(self, x: Tensor, form: Form) -> Tensor:
        """Return what replaces the skip x, [..., D]."""
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
class Highway(SingleStreamTopology):
    """Highway transformer (Chai et al., 2020): each skip plus a gated map of the layer's input.

    x_{t+1} = f_t(x_t) + x_t + act(W_1 x_t + b_1) * (W_2 x_t + b_2), feature by feature; act is tanh or the sigmoid.

    With `form=highway`, T = sigmoid(W_1 x_t + b_1) and x_{t+1} = f_t(x_t) + (1 - T) * x_t + T * (W_2 x_t + b_2). Layers
    do not share W and b. The state is x, [..., D].

    Source: Chai, Jin and Hou, Highway Transformer (arXiv 2004.08178, 2020), and the official code, which has all three
    forms. The first two are self-dependency units, the third is the highway gate. Differences and choices:

    * The gates read x_t without a norm. So does the code, in pre-norm and in post-norm networks. Its scripts use
      post-norm, where x_t is normed; here it is not.
    * W is drawn from N(0, 0.02^2) and b is 0, like all maps of the code; with `initial=lecun` W is drawn from N(0, 1 /
      D). T then starts near 1/2, whereas highway networks (Srivastava et al., 2015) start with a negative b, near the
      skip. No form starts as the residual network.
    * Matrices are weight-decayed like those of layers; the code has no weight decay.

    Since the gates' input is not normed, the stream grows with depth. Before training at width 512 with tanh, it
    reaches 2 after 12 blocks and 10^4 after 64 blocks. With the sigmoid it reaches 200. With `form=highway` it does not
    grow.

    Parameters: `layers * 2 * (width + 1) * width`
    """

    Options: ClassVar[type] = HighwayOptions
    axes: ClassVar[Axes] = {"form": ("tanh", "sigmoid", "highway")}
    in_joint_spaces: ClassVar[bool] = False

    def __init__(self, spec: StackSpec, options: HighwayOptions) -> None:
        super().__init__(spec, options)
        self.form: Form = options.form
        self.gates = nn.ModuleList(Gate(spec.width) for _ in spec.sites)
        if options.initial == "lecun":
            init_lecun(self.modules())

    @classmethod
    def count(cls, spec: StackSpec, options: HighwayOptions) -> Count:
        """Count two maps per layer; per feature three elementwise operations, or five with form=highway."""
        width = spec.width
        maps = linear(width, width).copies(2)
        return (maps + Count(elementwise=(5 if options.form == "highway" else 3) * width)).copies(len(spec.sites))

    def recomputes(self, t: int) -> Literal["read", "write"]:
        return "write"

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        skip: Tensor = self.gates[t](state, self.form)
        return skip + y
