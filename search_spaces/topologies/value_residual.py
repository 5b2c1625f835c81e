"""Value residuals: the values of the first attention layer are mixed into those of all others, or replace them.

Legend: V_1 = the values projected by the first attention layer, [..., features], before attention; V_n those of the
n-th. All else is the residual network.
"""

from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar, NamedTuple, final

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count, weighted_sum
from search_spaces.support.errors import check_at_least
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import NoOptions, StackSpec, Topology, pad_rows, sum_tensors


@dataclass(frozen=True, slots=True)
class ValueResidualOptions:
    """The mix of values.

    Attributes:
        first: Weight of V_1.
        own: Weight of the layer's own values.
        learned: Whether both weights are learned per layer, starting from these values.
        last: Number of attention layers with mixed values, counted from the end; by default all but the first.
    """

    first: float = 0.5
    own: float = 0.5
    learned: bool = False
    last: int | None = None

    def __post_init__(self) -> None:
        check_at_least("last", self.last, 1, "Leave it out for all layers but the first.")


class ValueStream(NamedTuple):
    """The residual stream, and V_1 once it exists."""

    x: Tensor
    first: Tensor | None = None


class ValueTopology(Topology):
    """The common part of ValueResidual and SVFormer: the residual network, with V_1 in its state."""

    takes_values: ClassVar[bool] = True
    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def incompatibility_reason(cls, architecture: Architecture, options: Any) -> str | None:
        if architecture.head_dim:
            return None
        return "value residuals need attention, got a network without heads. Use a transformer task."

    def open(self, *embeddings: Tensor) -> ValueStream:
        return ValueStream(sum_tensors(embeddings))

    def read(self, t: int, state: ValueStream) -> tuple[tuple[Tensor, ...], ValueStream]:
        return (state.x,), state

    def write(self, t: int, state: ValueStream, y: Tensor) -> ValueStream:
        return state._replace(x=state.x + y)

    def close(self, state: ValueStream) -> Tensor:
        return state.x


@final
class ValueResidual(ValueTopology):
    """ResFormer (Zhou et al., 2024): values of the first attention layer are part of those of all others.

    x_{t+1} = x_t + f_t(x_t), and attention layer n = 2 .. attends over V_n' = first V_1 + own V_n.

    Source: Zhou et al., Value Residual Learning (ResFormer, arXiv 2410.17897), and the official code: one half each,
    fixed. Its variants are options. `learned=true` has two numbers per layer, which start there. `first=2,own=1` is the
    constant form, and `first=5,own=1,last=3` the sparse one of eight layers. Differences and choices:

    * `first=0,own=1,learned=true` is in no source; it starts as the residual network (`nas retrofit`).
    * A layer whose heads * head_dim differs from the first's keeps its own values: published networks have one width.

    Parameters: `learned * 2 * len([
        features for n, features in enumerate(site.features for site in sites if "k" in site.ports)
        if n > 0 and features == next(site.features for site in sites if "k" in site.ports)
        and (last is None or n >= blocks - last)
    ])`
    """

    Options: ClassVar[type] = ValueResidualOptions
    axes: ClassVar[Axes] = {"learned": (False, True)}

    @classmethod
    def equals_resnet(cls, options: ValueResidualOptions) -> bool:
        """Return whether every layer starts with only its own values."""
        return (options.first, options.own) == (0, 1)

    def __init__(self, spec: StackSpec, options: ValueResidualOptions) -> None:
        super().__init__()
        self.attention_layers, self.mixing_layers = _attention_layers(spec), _mixing_layers(spec, options)
        weights = torch.tensor((float(options.first), float(options.own)))
        self.weights = nn.ParameterDict(
            {str(t): nn.Parameter(weights.clone()) for t in self.mixing_layers if options.learned},
        )
        self.first, self.own = options.first, options.own

    @classmethod
    def count(cls, spec: StackSpec, options: ValueResidualOptions) -> Count:
        """Count the learned numbers; an addition per layer, and the weighted values."""
        layers = _mixing_layers(spec, options)
        sums = sum(weighted_sum(2, spec.sites[t].features) for t in layers)
        return Count(2 * len(layers) * options.learned, elementwise=len(spec.sites) * spec.width + sums)

    def coefficients(self) -> dict[str, Tensor]:
        """Return the weights of V_1 and of the layer's own values in each attention layer."""
        alone, constants = torch.tensor((nan, 1.0)), torch.tensor((float(self.first), float(self.own)))
        weights = {t: self.weights.get(str(t), constants) for t in self.mixing_layers}
        return {"V_1, own": pad_rows(weights.get(t, alone) for t in self.attention_layers)}

    def values(self, t: int, state: ValueStream, v: Tensor | None) -> tuple[Tensor | None, ValueStream]:
        """Store V_1, and mix it into later values."""
        if state.first is None:
            return v, state._replace(first=v)
        if t not in self.mixing_layers:
            return v, state
        assert v is not None
        if str(t) in self.weights:
            first, own = self.weights[str(t)].unbind()
            return torch.addcmul(own * v, first, state.first), state
        return torch.add(self.own * v, state.first, alpha=self.first), state


@final
class SVFormer(ValueTopology):
    """SVFormer (Zhou et al., 2024): every attention layer attends over the values of the first.

    x_{t+1} = x_t + f_t(x_t), and every attention layer attends over V_1; no other projects values.

    Source: Zhou et al., Value Residual Learning (SVFormer, arXiv 2410.17897). A layer whose heads * head_dim differs
    from the first's projects its own.

    Parameters: `0`, and the layers have fewer by (blocks - 1) * heads * head_dim times the width, or the width plus one
    if they have biases.
    """

    @classmethod
    def projects_values(cls, spec: StackSpec, options: NoOptions, t: int) -> bool:
        """Return True for the first attention layer, and for others with a different number of features."""
        return t not in _same_size_layers(spec)

    def __init__(self, spec: StackSpec, options: NoOptions) -> None:
        super().__init__()
        self.attention_layers, self.sharing_layers = _attention_layers(spec), _same_size_layers(spec)

    @classmethod
    def count(cls, spec: StackSpec, options: NoOptions) -> Count:
        return Count(elementwise=len(spec.sites) * spec.width)

    def coefficients(self) -> dict[str, Tensor]:
        """Return the weights of V_1 and of the layer's own values in each attention layer; one of them is NaN."""
        return {
            "V_1, own": torch.tensor(
                [(1.0, nan) if t in self.sharing_layers else (nan, 1.0) for t in self.attention_layers]
            )
        }

    def values(self, t: int, state: ValueStream, v: Tensor | None) -> tuple[Tensor | None, ValueStream]:
        """Store V_1, and return it for later layers."""
        if state.first is None:
            return v, state._replace(first=v)
        return state.first if t in self.sharing_layers else v, state


def _attention_layers(spec: StackSpec) -> list[int]:
    return [t for t, site in enumerate(spec.sites) if site.attends]


def _same_size_layers(spec: StackSpec) -> frozenset[int]:
    """Return the attention layers after the first whose values have as many features as the first's."""
    attends = _attention_layers(spec)
    return frozenset(t for t in attends[1:] if spec.sites[t].features == spec.sites[attends[0]].features)


def _mixing_layers(spec: StackSpec, options: ValueResidualOptions) -> frozenset[int]:
    attends = _attention_layers(spec)
    return _same_size_layers(spec) & {*(attends if options.last is None else attends[-options.last :])}
