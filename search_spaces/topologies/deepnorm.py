"""DeepNorm: norms behind the sum, with a skip that is weighted by depth and layers that start smaller.

Legend: N = blocks, f_t = layer t = 0 .. without its input.
"""

from typing import ClassVar, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count
from search_spaces.support.fused_linear import FusedLinear
from search_spaces.topologies.base import InputMode, NoOptions, Topology, Wiring, sum_tensors

EPS = 1e-5


@final
class DeepNorm(Topology):
    """DeepNorm (Wang et al., 2022): a norm behind each sum, and a skip weighted by depth.

    x_{t+1} = LN(a x_t + f_t(x_t)), a = (2 N)^(1/4), and f_t does not norm x_t. The head reads x_L, which is normed.

    The maps of layers start multiplied by (8 N)^(-1/4), but those to queries and keys.

    Source: Wang et al., DeepNet (arXiv 2203.00555, 2022), the constants of networks that are an encoder or a decoder
    alone, and the official code (torchscale). Readings taken:

    * Its maps are Xavier-normal with that gain. Here it multiplies what the task draws, which may be far smaller: the
      language models' N(0, 0.02^2) at width 64 is a sixth of Xavier's.
    * Its feed-forward layers are not gated. Of gated ones the code multiplies the half that is activated, and leaves
      alone what multiplies that, which it calls the gate.
    * N counts the blocks that it wires. A block without attention has all its maps multiplied; each is normed there,
      which takes the factor out again, so that it only changes how fast they move.
    * LN has a gain, a shift and the code's epsilon, 1e-5, whatever norm the task's other networks have.

    The state is x, [..., D].

    Parameters: `2 * layers * width`
    """

    input_mode: InputMode = "normed"
    in_joint_spaces: ClassVar[bool] = False

    def __init__(self, wiring: Wiring, options: NoOptions) -> None:
        super().__init__()
        blocks = sum(site.starts_block for site in wiring.sites)
        self.skip, self.gain = (2 * blocks) ** 0.25, (8 * blocks) ** -0.25
        self.norms = nn.ModuleList(nn.LayerNorm(wiring.width, EPS) for _ in wiring.sites)

    @classmethod
    def count(cls, wiring: Wiring, options: NoOptions) -> Count:
        """A norm for each layer; the weighted skip and an addition."""
        layers = len(wiring.sites)
        return Count(2 * layers * wiring.width, elementwise=2 * layers * wiring.width)

    def start(self, layers: nn.ModuleList) -> None:
        """Multiply all maps but those to queries and keys, and of gated layers the half that is activated."""
        with torch.no_grad():
            for module in layers.modules():
                if isinstance(module, nn.Linear):
                    carrying = module.carrying if isinstance(module, FusedLinear) else slice(None)
                    module.weight[carrying].mul_(self.gain)

    def open(self, *parts: Tensor) -> Tensor:
        """Start from x_0, the sum of the embeddings."""
        return sum_tensors(parts)

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Give x_t to all ports."""
        return (state,), state

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        """Add the weighted skip, and norm."""
        x: Tensor = self.norms[t](torch.add(y, state, alpha=self.skip))
        return x

    def close(self, state: Tensor) -> Tensor:
        """Return x_L."""
        return state
