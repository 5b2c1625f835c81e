"""LAuReL, learned augmented residual layers: the skip of each layer is weighted, mapped, or reaches further back.

Legend: x_0 = the network's input, x_{t+1} = the state after layer t = 0 ..
Shapes: ... = any leading axes, D = width, R = rank.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count, linear, weighted_sum
from search_spaces.support.errors import check_at_least
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import StackSpec, Topology, sum_tensors
from search_spaces.topologies.single_stream import SingleStreamTopology


class LowRank(nn.Module):
    """The low-rank map B A x, with A Xavier-initialized and B initialized to 0."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)
        nn.init.xavier_uniform_(self.down.weight)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., D] to the same shape."""
        return self.up(self.down(x))  # type: ignore[no-any-return]  # nn.Module returns Any


def count_low_rank(width: int, rank: int) -> Count:
    """Count a LowRank map at one position, in closed form."""
    return linear(width, rank, bias=False) + linear(rank, width, bias=False)


@dataclass(frozen=True, slots=True)
class WeightedOptions:
    """The optional map of the skip.

    Attributes:
        rank: Rank of the map; 0 for no map.
    """

    rank: int = 0

    def __post_init__(self) -> None:
        check_at_least("rank", self.rank, 0)


@final
class LaurelRW(SingleStreamTopology):
    """LAuReL-RW (Menghani et al., 2024): the layer and its skip are weighted by two learned numbers.

    x_{t+1} = a f(x_t) + b x_t, (a, b) = 2 softmax of two numbers of each layer; with a rank, b (x_t + B A x_t).

    At initialization a = b = 1 and B = 0: the residual network. The state is x, [..., D].

    Source: Menghani, Kumar and Kumar, LAuReL (arXiv 2411.07501, 2024), "residual weights", and with a rank RW + LR. The
    paper says only that a softmax or a sigmoid bounds a and b. Here it is twice the softmax, since the softmax of two
    equal numbers would halve the stream at each layer.

    Parameters: `layers * (2 + 2 * rank * width)`
    """

    Options: ClassVar[type] = WeightedOptions
    axes: ClassVar[Axes] = {"rank": (0, 16)}
    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return True

    def __init__(self, spec: StackSpec, options: WeightedOptions) -> None:
        super().__init__(spec, options)
        self.logits = nn.ParameterList(nn.Parameter(torch.zeros(2)) for _ in spec.sites)
        self.maps = nn.ModuleList(LowRank(spec.width, options.rank) for _ in spec.sites if options.rank)

    @classmethod
    def count(cls, spec: StackSpec, options: WeightedOptions) -> Count:
        """Count two numbers and a map per layer; a weighted sum, and one more addition if there is a map."""
        width = spec.width
        layer = Count(2, elementwise=weighted_sum(2, width))
        if options.rank:
            layer += count_low_rank(width, options.rank) + Count(elementwise=width)
        return layer.copies(len(spec.sites))

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        a, b = (2 * self.logits[t].softmax(dim=0)).unbind()
        skip = state + self.maps[t](state) if len(self.maps) else state
        return torch.addcmul(b * skip, a, y)


@dataclass(frozen=True, slots=True)
class ReachOptions:
    """The rank of the map, and the states that it reads.

    Attributes:
        rank: Rank of each layer's map.
        reach: Number of latest states that it reads: 1 is the paper's LR, more is its PA.
    """

    rank: int = 16
    reach: int = 1

    def __post_init__(self) -> None:
        for name, number in (("rank", self.rank), ("reach", self.reach)):
            check_at_least(name, number, 1)


@final
class Laurel(Topology):
    """LAuReL-LR and -PA (Menghani et al., 2024): each skip plus a low-rank map of the latest states.

    x_{t+1} = x_t + f(x_t) + B_t A_t (sum_{j < reach} g_tj x_{t-j}), over the states that exist.

    g is initialized to 1 and B to 0: the residual network. The state is the latest states, newest first.

    Source: Menghani, Kumar and Kumar, LAuReL (arXiv 2411.07501, 2024), "low rank" (LR, `reach=1`, without g) and
    "previous activations" (PA). Differences and choices:

    * Each layer has one map for all states that it reads, as in the section on PA; the paper's table of costs has one
      per state. As the map is linear, it is applied once, to the weighted sum.
    * The paper does not state the initial g. With g = 0 and B = 0 neither would ever learn.
    * A is Xavier-initialized, as for the paper's ResNet-50. For language models the paper repeats the identity: the
      entry of row r and column d is 1 / sqrt(R D) if d mod R = r, else 0.
    * A "layer" is each attention and each feed-forward layer.

    Parameters: `sum(2 * rank * width + (min(reach, t + 1) if reach > 1 else 0) for t in range(layers))`
    """

    Options: ClassVar[type] = ReachOptions
    axes: ClassVar[Axes] = {"rank": (4, 16), "reach": (1, 3)}
    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return True

    def __init__(self, spec: StackSpec, options: ReachOptions) -> None:
        super().__init__()
        self.reach = options.reach
        self.maps = nn.ModuleList(LowRank(spec.width, options.rank) for _ in spec.sites)
        weights = [min(self.reach, t + 1) for t in range(len(spec.sites) if self.reach > 1 else 0)]
        self.g = nn.ParameterList(nn.Parameter(torch.ones(number)) for number in weights)

    @classmethod
    def count(cls, spec: StackSpec, options: ReachOptions) -> Count:
        """Count a map per layer and a number per state that it reads; two additions, and the weighted sum."""
        width, layers = spec.width, len(spec.sites)
        total_count = (count_low_rank(width, options.rank) + Count(elementwise=2 * width)).copies(layers)
        for states in [min(options.reach, t + 1) for t in range(layers if options.reach > 1 else 0)]:
            total_count += Count(states, elementwise=weighted_sum(states, width))
        return total_count

    def open(self, *embeddings: Tensor) -> tuple[Tensor, ...]:
        return (sum_tensors(embeddings),)

    def read(self, t: int, state: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], Any]:
        return (state[0],), state

    def write(self, t: int, state: tuple[Tensor, ...], y: Tensor) -> tuple[Tensor, ...]:
        mix = state[0]
        if self.reach > 1:
            weights = self.g[t].unbind()
            mix = weights[0] * state[0]
            for weight, earlier in zip(weights[1:], state[1:], strict=True):
                mix = torch.addcmul(mix, weight, earlier)
        return (state[0] + y + self.maps[t](mix), *state)[: self.reach]

    def close(self, state: tuple[Tensor, ...]) -> Tensor:
        return state[0]
