"""Chains: each layer reads what the layer before it left. The state is one tensor x, [..., D]."""

from typing import Any, ClassVar, final

from torch import Tensor

from search_spaces.support.count import Count
from search_spaces.topologies.base import NoOptions, Topology, Wiring, sum_tensors


class Chain(Topology):
    """What Plain and ResNet share; they differ in `write` and its cost."""

    def __init__(self, wiring: Wiring, options: NoOptions) -> None:
        super().__init__()

    def open(self, *parts: Tensor) -> Tensor:
        """Start from x_0, the sum of the embeddings."""
        return sum_tensors(parts)

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Give x_t to all ports."""
        return (state,), state

    def close(self, state: Tensor) -> Tensor:
        """Return x_L."""
        return state


@final
class Plain(Chain):
    """No skip: x_{t+1} = f_t(x_t). It is there to show what skips are worth, and only the space `topology` has it.

    Parameters: `0`
    """

    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def count(cls, wiring: Wiring, options: NoOptions) -> Count:
        """Nothing."""
        return Count()

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        """Replace x_t by the layer's output."""
        return y


@final
class ResNet(Chain):
    """The residual network: x_{t+1} = x_t + f_t(x_t) (He et al., 2016; pre-norm where the layers norm their input).

    Parameters: `0`
    """

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        """Always."""
        return True

    @classmethod
    def count(cls, wiring: Wiring, options: NoOptions) -> Count:
        """An addition a layer."""
        return Count(elementwise=len(wiring.sites) * wiring.width)

    def write(self, t: int, state: Tensor, y: Tensor) -> Any:
        """Add the layer's output to x_t."""
        return state + y
