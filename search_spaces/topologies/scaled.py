"""Scaled residual branches: the residual network with a learned weight on each layer's output.

Shapes: ... = any leading axes, D = width.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import InputMode, StackSpec
from search_spaces.topologies.single_stream import SingleStreamTopology


class ScaledBranches(SingleStreamTopology):
    """The common part of LayerScale and ReZero. The state is one tensor x, [..., D]."""

    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def count(cls, spec: StackSpec, options: Any) -> Count:
        """Count the weights; each layer's output is weighted and added."""
        return Count(cls.weights(spec, options), elementwise=2 * len(spec.sites) * spec.width)

    @staticmethod
    def weights(spec: StackSpec, options: Any) -> int:
        """Return the number of weights."""
        raise NotImplementedError

    def weight(self, t: int) -> Tensor:
        """Return the weight of layer t's output, [D] or []."""
        raise NotImplementedError

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return torch.addcmul(state, self.weight(t), y)


@dataclass(frozen=True, slots=True)
class LayerScaleOptions:
    """The initial weights.

    Attributes:
        start: Initial value of all weights; CaiT uses 0.1 up to 18 blocks, 1e-5 at 24 and 1e-6 above.
    """

    start: float = 1e-5

    def __post_init__(self) -> None:
        if self.start <= 0:
            rule = f"start must be more than 0, got {self.start}."
            raise UserError("out-of-range", rule, option="start", value=self.start, above=0)


@final
class LayerScale(ScaledBranches):
    """LayerScale (Touvron et al., 2021): x_{t+1} = x_t + g_t * f_t(x_t), feature by feature, with g initialized near 0.

    Source: Touvron et al., "Going deeper with Image Transformers" (CaiT, 2021), equation 4, and the official code.
    Gains are not weight-decayed. It starts near the identity, so it is not the residual network unless `start=1`.

    Parameters: `layers * width`
    """

    Options: ClassVar[type] = LayerScaleOptions
    axes: ClassVar[Axes] = {"start": (1e-5, 0.1)}

    @classmethod
    def equals_resnet(cls, options: LayerScaleOptions) -> bool:
        return options.start == 1

    def __init__(self, spec: StackSpec, options: LayerScaleOptions) -> None:
        super().__init__(spec, options)
        self.gains = nn.ParameterList(nn.Parameter(torch.full((spec.width,), float(options.start))) for _ in spec.sites)

    @staticmethod
    def weights(spec: StackSpec, options: LayerScaleOptions) -> int:
        return len(spec.sites) * spec.width

    def weight(self, t: int) -> Tensor:
        gain: Tensor = self.gains[t]
        return gain


@dataclass(frozen=True, slots=True)
class ReZeroOptions:
    """The number of weights, and the use of norms.

    Attributes:
        shared: Whether the layers of a block share one weight, as in the official transformer; otherwise each layer has
            its own, as in SkipInit.
        norms: Whether layers and the output head norm their inputs, as in the residual network.
    """

    shared: bool = True
    norms: bool = True


@final
class ReZero(ScaledBranches):
    """ReZero (Bachlechner et al., 2020): x_{t+1} = x_t + a f_t(x_t), with a number a per block, initialized to 0.

    Source: Bachlechner et al., "ReZero is All You Need" (2020), equation 3, and the official code. Its transformer has
    no norms, which is `norms=false`: neither layers nor the output head norm their inputs. Layers with inner norms
    (those of goal tasks) keep them. The default has the norms of the residual network. `shared=false` is SkipInit, with
    a number per branch (De and Smith, 2020).

    Parameters: `blocks if shared else layers`
    """

    Options: ClassVar[type] = ReZeroOptions
    axes: ClassVar[Axes] = {"shared": (True, False)}

    @classmethod
    def input_mode_of(cls, options: ReZeroOptions) -> InputMode:
        return "shared" if options.norms else "bare"

    def __init__(self, spec: StackSpec, options: ReZeroOptions) -> None:
        super().__init__(spec, options)
        self.input_mode = self.input_mode_of(options)
        opens = [not options.shared or site.starts_block for site in spec.sites]
        self.weight_index = [sum(opens[: t + 1]) - 1 for t in range(len(opens))]
        self.a = nn.ParameterList(nn.Parameter(torch.zeros(())) for _ in range(sum(opens)))

    @staticmethod
    def weights(spec: StackSpec, options: ReZeroOptions) -> int:
        return sum(not options.shared or site.starts_block for site in spec.sites)

    def weight(self, t: int) -> Tensor:
        number: Tensor = self.a[self.weight_index[t]]
        return number
