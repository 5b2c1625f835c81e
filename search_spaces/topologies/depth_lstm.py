"""Depth-wise LSTM: attention layers are the steps of an LSTM over depth, at each position separately.

Shapes: ... = any leading axes, D = width, F = hidden features of the block.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count, linear
from search_spaces.support.errors import UserError
from search_spaces.support.lecun_init import init_lecun
from search_spaces.topologies.base import StackSpec, Topology, sum_tensors

State = tuple[Tensor, Tensor]
"""Output and cell state, each [..., D]."""


@dataclass(frozen=True, slots=True)
class DepthLSTMOptions:
    """The initialization.

    Attributes:
        initial: Initialization of weights: "xavier", or "lecun" as in Mak and Flanigan's comparison (2025, C.4).
    """

    initial: Literal["xavier", "lecun"] = "xavier"


class Step(nn.Module):
    """One step of the LSTM, with its own weights."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gates = nn.Linear(2 * width, 3 * width, bias=False)
        self.norms = nn.ModuleList(nn.LayerNorm(width, 1e-6) for _ in range(3))
        self.up = nn.Linear(2 * width, hidden, bias=False)
        self.norm = nn.LayerNorm(hidden, 1e-6)
        self.down = nn.Linear(hidden, width)
        for gate in self.gates.weight.detach().chunk(3):  # three maps in one, each with its own fan-out
            nn.init.xavier_uniform_(gate)
        for linear_map in (self.up, self.down):
            nn.init.xavier_uniform_(linear_map.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, y: Tensor, state: State) -> State:
        """Map the attention layer's output [..., D] and the state to the next state."""
        output, cell = state
        features = torch.cat((y, output), dim=-1)
        parts = zip(self.norms, self.gates(features).chunk(3, dim=-1), strict=True)
        input_gate, forget_gate, output_gate = (torch.sigmoid(norm(part)) for norm, part in parts)
        cell = forget_gate * cell + input_gate * self.down(F.relu(self.norm(self.up(features))))
        return output_gate * cell, cell


@final
class DepthLSTM(Topology):
    """Depth-wise LSTM (Xu et al., 2020): an LSTM over depth for residuals and feed-forward layers.

    Attention layers are connected by an LSTM over depth, which replaces both the residual connections and the
    feed-forward layers.

    With o_0 = x_0 the network's input, c_0 a learned vector, and z_t = [f_t(o_t); o_t]:

        i, f, g = sigmoid(LN(W z_t)), three gates with a W and an LN of their own
        c_{t+1} = f * c_t + i * (W_2 relu(LN(W_1 z_t)) + b_2)
        o_{t+1} = g * c_{t+1}

    W_1 maps to the block's hidden features. The output head reads o. The state is o and c, each [..., D].

    Source: Xu et al., Rewiring the Transformer with Depth-Wise LSTMs (arXiv 2007.06257, 2020 and 2024). Its abstract
    says that LSTMs connect pure attention layers and absorb layer norm and feed-forward computation. No code of it was
    found. The structure is chosen to match the 233M parameters that Mak and Flanigan (2025) print in table 10.
    Differences and choices:

    * Cells follow the authors' public library (hfxunlp's transformer), which has two kinds. Gates and the candidate's
      features are normed, the activation is ReLU, and the cell's output has no tanh. c_0 is learned from 0, as in the
      library's cell with a two-layer candidate. The output gate reads z_t, as in the other cell, not c_{t+1}. The
      library norms several gates together; here each has its own norm. Normed maps have no bias besides the norm's.
    * Steps do not share weights; shared, they would be far fewer than printed. o_0 is the network's input.
    * Weights are Xavier-initialized (`initial=lecun`: N(0, 1 / fan-in)) and biases are 0, also the forget gate's.
      Weights are decayed, norms and c_0 are not. No source states this.
    * Attention layers norm their inputs, as with every topology.

    Parameters: `width + sum(6 * width**2 + 6 * width + (2 * width + 2) * f + (f + 1) * width for f in hidden)`

    Raises:
        UserError: A block has more than one layer.
    """

    Options: ClassVar[type] = DepthLSTMOptions
    replaces_feed_forward: ClassVar[bool] = True
    in_joint_spaces: ClassVar[bool] = False

    def __init__(self, spec: StackSpec, options: DepthLSTMOptions) -> None:
        super().__init__()
        blocks = spec.num_blocks
        if blocks < len(spec.sites):
            raise UserError(
                "unsupported",
                "depth-lstm replaces feed-forward layers: each block must have one layer, got "
                f"{len(spec.sites)} layers in {blocks} blocks. Leave feed-forward layers out if the topology's "
                "replaces_feed_forward is true, as build_transformer does.",
                topology="depth-lstm",
                layers=len(spec.sites),
                blocks=blocks,
            )
        self.cell = nn.Parameter(torch.zeros(spec.width))
        self.steps = nn.ModuleList(Step(spec.width, hidden) for hidden in spec.hidden)
        if options.initial == "lecun":
            init_lecun(self.modules())

    @classmethod
    def incompatibility_reason(cls, architecture: Architecture, options: DepthLSTMOptions) -> str | None:
        """Refuse networks without attention layers."""
        if architecture.heads == 0:
            return "depth-lstm needs attention layers, got a network without heads. Use a transformer task."
        return None

    @classmethod
    def count(cls, spec: StackSpec, options: DepthLSTMOptions) -> Count:
        """Count a step per block, with four elementwise operations per feature, and the first cell."""
        return sum((_count_step(spec.width, hidden) for hidden in spec.hidden), Count(spec.width))

    def open(self, *embeddings: Tensor) -> State:
        """Start from x_0, the sum of the embeddings, and the first cell."""
        x = sum_tensors(embeddings)
        return x, self.cell.expand_as(x)

    def read(self, t: int, state: State) -> tuple[tuple[Tensor, ...], State]:
        return (state[0],), state

    def recomputes(self, t: int) -> Literal["read", "write"]:
        return "write"

    def write(self, t: int, state: State, y: Tensor) -> Any:
        return self.steps[t](y, state)

    def close(self, state: State) -> Tensor:
        return state[0]


def _count_step(width: int, hidden: int) -> Count:
    gates = linear(2 * width, 3 * width, bias=False) + Count(2 * 3 * width)
    candidate = linear(2 * width, hidden, bias=False) + Count(2 * hidden) + linear(hidden, width)
    return gates + candidate + Count(elementwise=4 * width)
