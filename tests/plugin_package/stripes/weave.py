"""Plug-ins of a package: a topology, a task, a space, a sampler and operator handlers."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, ClassVar, final

from torch import Tensor, nn

from nas import Proposer, SearchState
from search_spaces import Architecture, Count, Norm, SearchSpace, Site, StackSpec, Topology, build_stack, sum_tensors
from stripes import Stripes
from stripes.doors import Spectrum, fft_macs


@dataclass(frozen=True, slots=True)
class WeaveOptions:
    """The gain of each layer's output."""

    gain: float = 1.0


@final
class Weave(Topology):
    """x + gain * f(x): plain residuals with a constant gain."""

    Options: ClassVar[type] = WeaveOptions
    axes: ClassVar[dict[str, tuple[float, ...]]] = {"gain": (0.5, 1.0)}

    def __init__(self, spec: StackSpec, options: WeaveOptions) -> None:
        super().__init__()
        self.gain = options.gain

    @classmethod
    def count(cls, spec: StackSpec, options: WeaveOptions) -> Count:
        """A multiplication and an addition for each feature."""
        return Count(elementwise=2 * spec.width * len(spec.sites))

    def open(self, *embeddings: Tensor) -> Tensor:
        """The sum of the embeddings."""
        return sum_tensors(embeddings)

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        return (state,), state

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return state + self.gain * y

    def close(self, state: Tensor) -> Tensor:
        return state


class Layer(nn.Sequential):
    """A block of one layer, [B, D] to [B, D]."""

    def __init__(self, width: int) -> None:
        super().__init__(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
        self.site = Site(("x",), width, starts_block=True, norms_input=True)


class WovenStripes(Stripes):
    """The stripes task with a network for any topology."""

    name = "woven-stripes"
    version = 1
    base = Architecture(depth=2, width=16, hidden=16)
    handlers: ClassVar[dict[str, Any]] = {"aten::fft_rfft": fft_macs, "aten::fft_irfft": fft_macs}

    def build(self, architecture: Architecture) -> nn.Module:
        """Numbers [B, 1] to class scores [B, 2]."""
        layers = [Layer(architecture.width) for _ in range(architecture.depth)]
        stack = build_stack(architecture, layers, Norm("layer", 1e-6), num_embeddings=1)
        parts = OrderedDict(embedding=nn.Linear(1, 16), spectrum=Spectrum(16), stack=stack, head=nn.Linear(16, 2))
        return nn.Sequential(parts)


def depths(base: Architecture) -> SearchSpace:
    """One to three blocks, woven or not."""
    return SearchSpace("depths", base, {"depth": (1, 2, 3), "topology": ("resnet", "weave"), "weave.gain": (0.5, 1.0)})


@final
class Last(Proposer):
    """Always proposes the last candidate."""

    def propose(self, state: SearchState) -> int:
        return int(state.new.max())
