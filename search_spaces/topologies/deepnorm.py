"""DeepNorm: post-norm with a skip that is scaled by depth, and smaller initial weights.

Legend: N = blocks, f_t = layer t = 0 .. without its skip.
"""

from typing import ClassVar, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count
from search_spaces.support.fused_linear import FusedLinear
from search_spaces.topologies.base import InputMode, NoOptions, StackSpec
from search_spaces.topologies.single_stream import SingleStreamTopology

EPS = 1e-5


@final
class DeepNorm(SingleStreamTopology):
    """DeepNorm (Wang et al., 2022): post-norm with a skip weighted by depth.

    x_{t+1} = LN(a x_t + f_t(x_t)), a = (2 N)^(1/4), and f_t does not norm x_t. The output head reads x_L, which is
    normed.

    All initial weights of layers, except those of queries and keys, are multiplied by (8 N)^(-1/4).

    Source: Wang et al., DeepNet (arXiv 2203.00555, 2022), with the constants of encoder-only and decoder-only networks,
    and the official code (torchscale). Differences and choices:

    * The code draws Xavier-normal weights with this gain. Here the gain multiplies the task's initialization, which may
      be far smaller: the language models' N(0, 0.02^2) at width 64 is a sixth of Xavier's.
    * Its feed-forward layers are not gated. In gated ones the code scales the half that is activated. It does not scale
      the other half, which it calls the gate.
    * N counts the blocks of this topology. In blocks without attention all weights are scaled. A norm follows each
      there and removes the factor, so only their learning speed changes.
    * LN has a gain, a shift and the code's epsilon, 1e-5, also in tasks that use another norm elsewhere.

    The state is x, [..., D].

    Parameters: `2 * layers * width`
    """

    input_mode: InputMode = "normed"
    in_joint_spaces: ClassVar[bool] = False

    def __init__(self, spec: StackSpec, options: NoOptions) -> None:
        super().__init__(spec, options)
        blocks = spec.num_blocks
        self.skip, self.gain = (2 * blocks) ** 0.25, (8 * blocks) ** -0.25
        self.norms = nn.ModuleList(nn.LayerNorm(spec.width, EPS) for _ in spec.sites)

    @classmethod
    def count(cls, spec: StackSpec, options: NoOptions) -> Count:
        layers = len(spec.sites)
        return Count(2 * layers * spec.width, elementwise=2 * layers * spec.width)

    def init_layers(self, layers: nn.ModuleList) -> None:
        """Scale all weights except those of queries and keys, and the half of gated layers that is not activated."""
        with torch.no_grad():
            for module in layers.modules():
                if isinstance(module, nn.Linear):
                    output_rows = module.output_rows if isinstance(module, FusedLinear) else slice(None)
                    module.weight[output_rows].mul_(self.gain)

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        x: Tensor = self.norms[t](torch.add(y, state, alpha=self.skip))
        return x
