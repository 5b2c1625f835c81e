"""LAuReL, learned augmented residual layers: the skip around each layer is weighted, mapped, or reaches further back.

Legend: x_0 = the network's input, x_{t+1} = what layer t = 0 .. leaves.
Shapes: ... = any leading axes, D = width, R = rank.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count, linear, weighted_sum
from search_spaces.support.errors import check_at_least
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import Topology, Wiring, sum_tensors


class LowRank(nn.Module):
    """B A x, with A drawn by Xavier's rule and B zeros at the start."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)
        nn.init.xavier_uniform_(self.down.weight)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., D] to the same shape."""
        return self.up(self.down(x))  # type: ignore[no-any-return]  # nn.Module returns Any


def count_low_rank(width: int, rank: int) -> Count:
    """Closed form of that map at one position."""
    return linear(width, rank, bias=False) + linear(rank, width, bias=False)


@dataclass(frozen=True, slots=True)
class WeightedOptions:
    """Whether the skip is mapped as well.

    Attributes:
        rank: Of the map; 0 has none.
    """

    rank: int = 0

    def __post_init__(self) -> None:
        check_at_least("rank", self.rank, 0)


@final
class LaurelRW(Topology):
    """LAuReL-RW (Menghani et al., 2024): the layer and its skip are weighted by two learned numbers.

    x_{t+1} = a f(x_t) + b x_t, (a, b) = 2 softmax of two numbers of each layer; with a rank, b (x_t + B A x_t).

    At the start a = b = 1 and B = 0: the residual network. The state is x, [..., D].

    Source: Menghani, Kumar and Kumar, LAuReL (arXiv 2411.07501, 2024), "residual weights", and with a rank RW + LR. The
    paper bounds a and b by a softmax or a sigmoid and says no more: taken is twice the softmax, since the softmax of
    two equal numbers would halve the stream at each layer.

    Parameters: `layers * (2 + 2 * rank * width)`
    """

    Options: ClassVar[type] = WeightedOptions
    axes: ClassVar[Axes] = {"rank": (0, 16)}
    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        """Always."""
        return True

    def __init__(self, wiring: Wiring, options: WeightedOptions) -> None:
        super().__init__()
        self.logits = nn.ParameterList(nn.Parameter(torch.zeros(2)) for _ in wiring.sites)
        self.maps = nn.ModuleList(LowRank(wiring.width, options.rank) for _ in wiring.sites if options.rank)

    @classmethod
    def count(cls, wiring: Wiring, options: WeightedOptions) -> Count:
        """Two numbers and a map for each layer; a weighted sum, and where there is a map an addition more."""
        width = wiring.width
        layer = Count(2, elementwise=weighted_sum(2, width))
        if options.rank:
            layer += count_low_rank(width, options.rank) + Count(elementwise=width)
        return layer.repeat(len(wiring.sites))

    def open(self, *parts: Tensor) -> Tensor:
        """Start from x_0, the sum of the embeddings."""
        return sum_tensors(parts)

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Give x_t to all ports."""
        return (state,), state

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        """Weigh the layer's output and the skip."""
        a, b = (2 * self.logits[t].softmax(dim=0)).unbind()
        skip = state + self.maps[t](state) if len(self.maps) else state
        return torch.addcmul(b * skip, a, y)

    def close(self, state: Tensor) -> Tensor:
        """Return x_L."""
        return state


@dataclass(frozen=True, slots=True)
class ReachOptions:
    """What the map is, and what it is of.

    Attributes:
        rank: Of the map of each layer.
        reach: How many states it is of, the latest among them: 1 is the paper's LR, more is its PA.
    """

    rank: int = 16
    reach: int = 1

    def __post_init__(self) -> None:
        for name, number in (("rank", self.rank), ("reach", self.reach)):
            check_at_least(name, number, 1)


@final
class Laurel(Topology):
    """LAuReL-LR and -PA (Menghani et al., 2024): beside each skip a low-rank map of the latest states.

    x_{t+1} = x_t + f(x_t) + B_t A_t (sum_{j < reach} g_tj x_{t-j}), over the states that there are.

    g are ones and B zeros at the start: the residual network. The state is the latest states, newest first.

    Source: Menghani, Kumar and Kumar, LAuReL (arXiv 2411.07501, 2024), "low rank" (LR, `reach=1`, without g) and
    "previous activations" (PA). Readings taken:

    * The map of a layer is one for all states that it reaches, as in the section on PA; its table of costs has one for
      each. As the map is linear it is applied once, to the weighted sum.
    * Where g starts is not said. With g = 0 and B = 0 neither would ever learn.
    * A is drawn by Xavier's rule, as for ResNet-50; for language models the paper has columns of its own.
    * A "layer" is taken to be each attention and feed-forward layer.

    Parameters: `sum(2 * rank * width + (min(reach, t + 1) if reach > 1 else 0) for t in range(layers))`
    """

    Options: ClassVar[type] = ReachOptions
    axes: ClassVar[Axes] = {"rank": (4, 16), "reach": (1, 3)}
    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        """Always."""
        return True

    def __init__(self, wiring: Wiring, options: ReachOptions) -> None:
        super().__init__()
        self.reach = options.reach
        self.maps = nn.ModuleList(LowRank(wiring.width, options.rank) for _ in wiring.sites)
        weights = [min(self.reach, t + 1) for t in range(len(wiring.sites) if self.reach > 1 else 0)]
        self.g = nn.ParameterList(nn.Parameter(torch.ones(number)) for number in weights)

    @classmethod
    def count(cls, wiring: Wiring, options: ReachOptions) -> Count:
        """A map for each layer and a number for each state that it reaches; two additions, and the weighted sum."""
        width, layers = wiring.width, len(wiring.sites)
        total_count = (count_low_rank(width, options.rank) + Count(elementwise=2 * width)).repeat(layers)
        for states in [min(options.reach, t + 1) for t in range(layers if options.reach > 1 else 0)]:
            total_count += Count(states, elementwise=weighted_sum(states, width))
        return total_count

    def open(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Start from x_0, the sum of the embeddings."""
        return (sum_tensors(parts),)

    def read(self, t: int, state: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], Any]:
        """Give x_t to all ports."""
        return (state[0],), state

    def write(self, t: int, state: tuple[Tensor, ...], y: Tensor) -> tuple[Tensor, ...]:
        """Add the layer's output, and what the map makes of the states."""
        mix = state[0]
        if self.reach > 1:
            weights = self.g[t].unbind()
            mix = weights[0] * state[0]
            for weight, earlier in zip(weights[1:], state[1:], strict=True):
                mix = torch.addcmul(mix, weight, earlier)
        return (state[0] + y + self.maps[t](mix), *state)[: self.reach]

    def close(self, state: tuple[Tensor, ...]) -> Tensor:
        """Return x_L."""
        return state[0]
