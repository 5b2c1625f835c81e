"""Scaled branches: the residual network with a weight on what each layer adds, learned or by depth.

Shapes: ... = any leading axes, D = width.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import InputMode, Topology, Wiring, sum_tensors


class ScaledBranches(Topology):
    """What LayerScale and ReZero share. The state is one tensor x, [..., D]."""

    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def count(cls, wiring: Wiring, options: Any) -> Count:
        """The weights; each layer's output is weighted and added."""
        return Count(cls.weights(wiring, options), elementwise=2 * len(wiring.sites) * wiring.width)

    @staticmethod
    def weights(wiring: Wiring, options: Any) -> int:
        """How many weights there are."""
        raise NotImplementedError

    def weight(self, t: int) -> Tensor:
        """What the output of layer t is multiplied with, [D] or []."""
        raise NotImplementedError

    def open(self, *parts: Tensor) -> Tensor:
        """Start from x_0, the sum of the embeddings."""
        return sum_tensors(parts)

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Give x_t to all ports."""
        return (state,), state

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        """Add the weighted output to x_t."""
        return torch.addcmul(state, self.weight(t), y)

    def close(self, state: Tensor) -> Tensor:
        """Return x_L."""
        return state


@dataclass(frozen=True, slots=True)
class LayerScaleOptions:
    """Where weights start.

    Attributes:
        start: All of them; CaiT has 0.1 up to 18 blocks, 1e-5 at 24 and 1e-6 above.
    """

    start: float = 1e-5

    def __post_init__(self) -> None:
        if self.start <= 0:
            rule = f"start must be more than 0, got {self.start}."
            raise UserError("out-of-range", rule, option="start", value=self.start, above=0)


@final
class LayerScale(ScaledBranches):
    """LayerScale (Touvron et al., 2021): x_{t+1} = x_t + g_t * f_t(x_t), feature by feature, every g near 0 at first.

    Source: Touvron et al., "Going deeper with Image Transformers" (CaiT, 2021), equation 4, and the official code.
    Gains are not weight-decayed. Near the identity at the start, and so not the residual network but with
    `start=1`.

    Parameters: `layers * width`
    """

    Options: ClassVar[type] = LayerScaleOptions
    axes: ClassVar[Axes] = {"start": (1e-5, 0.1)}

    @classmethod
    def equals_resnet(cls, options: LayerScaleOptions) -> bool:
        """Where gains begin at 1."""
        return options.start == 1

    def __init__(self, wiring: Wiring, options: LayerScaleOptions) -> None:
        super().__init__()
        self.gains = nn.ParameterList(
            nn.Parameter(torch.full((wiring.width,), float(options.start))) for _ in wiring.sites
        )

    @staticmethod
    def weights(wiring: Wiring, options: LayerScaleOptions) -> int:
        """A gain for each feature of each layer."""
        return len(wiring.sites) * wiring.width

    def weight(self, t: int) -> Tensor:
        """Its gains, [D]."""
        gain: Tensor = self.gains[t]
        return gain


@dataclass(frozen=True, slots=True)
class ReZeroOptions:
    """How many weights there are, and beside which norms.

    Attributes:
        shared: Whether the layers of a block share one, as in the official transformer; else each has its own, which
            is SkipInit's.
        norms: Whether layers and the head norm what they read, as the residual network's do.
    """

    shared: bool = True
    norms: bool = True


@final
class ReZero(ScaledBranches):
    """ReZero (Bachlechner et al., 2020): x_{t+1} = x_t + a f_t(x_t), a number a for each block, 0 at the start.

    Source: Bachlechner et al., "ReZero is All You Need" (2020), equation 3, and the official code. Its transformer has
    no norms, which is `norms=false`: a transformer's layers norm nothing then, nor does what reads x_L. Layers that
    bring norms of their own (those of goal tasks) keep them. By default there are those of the residual network.
    `shared=false` is SkipInit's, a number for each branch (De and Smith, 2020).

    Parameters: `blocks if shared else layers`
    """

    Options: ClassVar[type] = ReZeroOptions
    axes: ClassVar[Axes] = {"shared": (True, False)}

    @classmethod
    def input_mode_of(cls, options: ReZeroOptions) -> InputMode:
        """x_t, to be read as it is where there are no norms."""
        return "shared" if options.norms else "bare"

    def __init__(self, wiring: Wiring, options: ReZeroOptions) -> None:
        super().__init__()
        self.input_mode = self.input_mode_of(options)
        opens = [not options.shared or site.starts_block for site in wiring.sites]
        self.which = [sum(opens[: t + 1]) - 1 for t in range(len(opens))]
        self.a = nn.ParameterList(nn.Parameter(torch.zeros(())) for _ in range(sum(opens)))

    @staticmethod
    def weights(wiring: Wiring, options: ReZeroOptions) -> int:
        """One for each block, or for each layer."""
        return sum(not options.shared or site.starts_block for site in wiring.sites)

    def weight(self, t: int) -> Tensor:
        """Its block's number."""
        number: Tensor = self.a[self.which[t]]
        return number
