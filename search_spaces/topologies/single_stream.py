"""Chains: each layer reads the state that the layer before left. The state is one tensor x, [..., D]."""

from typing import Any, ClassVar, final

from torch import Tensor

from search_spaces.support.count import Count
from search_spaces.topologies.base import NoOptions, StackSpec, Topology, sum_tensors


class SingleStreamTopology(Topology):
    """The common part of topologies that differ only in `write` and its cost."""

    def __init__(self, spec: StackSpec, options: Any) -> None:
        super().__init__()

    def open(self, *embeddings: Tensor) -> Tensor:
        return sum_tensors(embeddings)

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        return (state,), state

    def close(self, state: Tensor) -> Tensor:
        return state


@final
class Plain(SingleStreamTopology):
    """No skip: x_{t+1} = f_t(x_t). It shows the effect of skips, and only the space `topology` includes it.

    Parameters: `0`
    """

    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def count(cls, spec: StackSpec, options: NoOptions) -> Count:
        return Count()

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return y


@final
class ResNet(SingleStreamTopology):
    """The residual network: x_{t+1} = x_t + f_t(x_t) (He et al., 2016; pre-norm where the layers norm their input).

    Parameters: `0`
    """

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return True

    @classmethod
    def count(cls, spec: StackSpec, options: NoOptions) -> Count:
        return Count(elementwise=len(spec.sites) * spec.width)

    def write(self, t: int, state: Tensor, y: Tensor) -> Any:
        return state + y
