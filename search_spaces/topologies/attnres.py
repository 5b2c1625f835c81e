"""Attention residuals: every layer attends over the outputs of all layers before it, in place of their sum.

Legend: v_0 = the network's input, v_i = the output of layer i = 1 .. L without its input.
Shapes: ... = any leading axes, D = width, S = sources, H = heads.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count, weighted_sum
from search_spaces.support.errors import check_at_least
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import Topology, Wiring, largest_divisor, sum_tensors

Source = tuple[Tensor, Tensor]
"""What can be attended to, [..., D], and one over its root mean square, [..., 1]."""

EPS = 1e-6
"""Of the norm of keys."""


class Sources(NamedTuple):
    """The input and the sums of all blocks that are complete, and the sum of the one that is not."""

    complete: tuple[Source, ...]
    partial: Source | None = None

    @property
    def all(self) -> tuple[Source, ...]:
        """Everything that can be attended to, oldest first."""
        return self.complete if self.partial is None else (*self.complete, self.partial)


@dataclass(frozen=True, slots=True)
class OverDepthOptions:
    """What is attended to.

    Attributes:
        every: How many layers are one source, their sum: 1 attends to each, and as many as there are to the input and
            the rest. They are counted one by one, attention and feed-forward.
        heads: Into how many groups the features are divided, each with a softmax of its own (MHAR, arXiv 2607.27230).
    """

    every: int = 1
    heads: int = 1

    def __post_init__(self) -> None:
        for name, number in (("every", self.every), ("heads", self.heads)):
            check_at_least(name, number, 1)


@dataclass(frozen=True, slots=True)
class AttentionResidualsOptions(OverDepthOptions):
    """What is attended to, and what is read of it.

    Attributes:
        scaled: Whether a mix is multiplied by the number of its sources; else it is their mean, as published.
    """

    scaled: bool = True


@dataclass(frozen=True, slots=True)
class DeltaOptions(OverDepthOptions):
    """What is attended to, and how what is found is added.

    Attributes:
        gated: Whether it is multiplied by a number that is learned, from 0 on; else all of it is added.
    """

    gated: bool = True


class OverDepth(Topology):
    """What both forms share: the sources, and mixes of them with a query for each."""

    in_joint_spaces: ClassVar[bool] = False

    def __init__(self, wiring: Wiring, options: OverDepthOptions, queries: int) -> None:
        super().__init__()
        self.every, self.heads = options.every, options.heads
        self.w = nn.ParameterList(nn.Parameter(torch.zeros(wiring.width)) for _ in range(queries))

    @classmethod
    def refusal(cls, architecture: Architecture, options: OverDepthOptions) -> str | None:
        """Widths that the heads do not divide."""
        heads, width = options.heads, architecture.width
        if width % heads == 0:
            return None
        rule = f"heads over depth must divide the width, got heads={heads} and width={width}"
        return f"{rule}. Take heads={largest_divisor(width, heads)}."

    @staticmethod
    def count_mixes(wiring: Wiring, options: OverDepthOptions, queries: int) -> Count:
        """A query each, its product with every source, and weighted sums; outputs that are added to others."""
        width, every = wiring.width, options.every
        sources = [1 + t // every + (t % every > 0) for t in range(1, queries + 1)]
        sums = sum(t % every > 0 for t in range(len(wiring.sites)))
        mixes = sum(weighted_sum(number, width) for number in sources)
        return Count(queries * width, sum(sources) * width, mixes + sums * width)

    def append(self, t: int, sources: Sources, y: Tensor) -> Sources:
        """The sources with layer t's output in the sum under way, which is complete after so many layers."""
        under_way = _source(y if sources.partial is None else sources.partial[0] + y)
        if (t + 1) % self.every:
            return Sources(sources.complete, under_way)
        return Sources((*sources.complete, under_way))

    def attend(self, query: int, sources: tuple[Source, ...]) -> Tensor:
        """sum_i a_i v_i, by a softmax over the sources in each head."""
        parts = [v.unflatten(-1, (self.heads, -1)) for v, _ in sources]  # [..., H, D / H]
        scores = [_products(part, self.w[query]) * inverse for part, (_, inverse) in zip(parts, sources, strict=True)]
        shares = torch.stack(scores, dim=-1).softmax(dim=-1).split(1, dim=-1)  # S of [..., H, 1]
        mix: Tensor = shares[0] * parts[0]
        for share, part in zip(shares[1:], parts[1:], strict=True):
            mix = torch.addcmul(mix, share, part)
        return mix.flatten(-2)


@final
class AttentionResiduals(OverDepth):
    """Attention residuals (Kimi Team, 2026): layers attend over the outputs of all before, in place of their sum.

    Layer t + 1 reads s sum_i a_i v_i over its s sources, a = softmax_i(w_t . v_i / rms(v_i)), at each position.

    With `every` above 1 the outputs of so many layers are one source, their sum, which begins anew after them; of the
    one under way the sum so far is a source. The head reads such a mix with a query of its own. All w are zeros at the
    start: the mix is the mean of the sources. With `heads` each group of features has weights of its own.

    Source: Kimi Team, Attention Residuals (arXiv 2603.15031, 2026). Readings taken:

    * The published mix is sum_i a_i v_i. Here it is s times that, a factor which the norm in front of a layer, or of
      the head, takes out again, forward and backward (up to its epsilon); so behind norms this is the published
      network. Where no norm follows it starts as the residual network, which without the factor it would not:
      `scaled=false` is the published mix there as well.
    * The paper's keys are normed with a learned gain, which is one with w here: their product is what counts.
    * The first layer has one source, and so no query: published code has one there, which never learns.
    * Keys are normed over all features, whatever the heads.
    * A block is counted in layers, as in the paper ("one query per layer" means attention and feed-forward each);
      Kimi K3 counts pairs of them.
    * w is not weight-decayed, of which the paper says nothing: decay would pull to the mean.

    The state is the sources, each with what norms it, which is computed once.

    Parameters: `layers * width`
    """

    Options: ClassVar[type] = AttentionResidualsOptions
    axes: ClassVar[Axes] = {"every": (1, 4), "heads": (1, 4)}

    @classmethod
    def equals_resnet(cls, options: AttentionResidualsOptions) -> bool:
        """Where it is scaled: else it ends with a share of what the residual network does."""
        return options.scaled

    def __init__(self, wiring: Wiring, options: AttentionResidualsOptions) -> None:
        super().__init__(wiring, options, len(wiring.sites))
        self.scaled = options.scaled

    @classmethod
    def count(cls, wiring: Wiring, options: AttentionResidualsOptions) -> Count:
        """A mix for each layer but the first, and the head's."""
        return cls.count_mixes(wiring, options, len(wiring.sites))

    def open(self, *parts: Tensor) -> Sources:
        """Start from the network's input alone."""
        return Sources((_source(sum_tensors(parts)),))

    def read(self, t: int, state: Sources) -> tuple[tuple[Tensor, ...], Sources]:
        """Mix the sources; the first layer reads the only one."""
        return ((self._mix(t - 1, state) if t else state.complete[0][0]),), state

    def write(self, t: int, state: Sources, y: Tensor) -> Sources:
        """Add the layer's output to the sum under way."""
        return self.append(t, state, y)

    def close(self, state: Sources) -> Tensor:
        """Mix once more."""
        return self._mix(len(self.w) - 1, state)

    def _mix(self, query: int, state: Sources) -> Tensor:
        mix = self.attend(query, state.all)
        return len(state.all) * mix if self.scaled else mix


@final
class AttentionResidualsDelta(OverDepth):
    """Delta attention residuals (Luo et al., 2026): the mix over depth is added to the residual stream.

    Layer t + 1 reads h_t + g_t sum_i a_i v_i, with a as in attention residuals and h_t the residual stream.

    The head reads the residual stream alone. g_t, a number for each layer, is 0 at the start: the residual network. It
    is a saddle behind norms, for w = 0 makes the mix a multiple of h_t, which a norm takes out: no gradient reaches g,
    nor w while g is 0, but for the norm's epsilon and rounding, which AdamW makes steps of and SGD does not. With
    `gated=false` g is 1 throughout: the same network at the start behind norms, and all of it learns from there.

    Source: Luo, Cai and Hu, Delta Attention Residuals (arXiv 2605.18855, 2026), and the official code, which trains
    without a gate unless it is asked for one; one from 0 on is its `learnable_alpha`. Readings taken:

    * Gated, since it then starts as the residual network wherever it stands; the code's trainings are `gated=false`.
    * w is 0 at the start, as in attention residuals; the code draws it as all maps.
    * The first layer, whose one source is h itself, has neither query nor gate; in the code it has no source.
    * With `every` above 1 the sum under way is a source, as in attention residuals. In the code it is none, and a sum
      is what the stream is more than the sum before.
    * The learned gain of keys is one with w. Neither w nor g is weight-decayed, as in attention residuals; the code
      decays all.

    The state is (sources, h).

    Parameters: `(layers - 1) * (width + gated)`
    """

    Options: ClassVar[type] = DeltaOptions
    axes: ClassVar[Axes] = {"every": (1, 4), "gated": (True, False)}

    @classmethod
    def equals_resnet(cls, options: DeltaOptions) -> bool:
        """Where it is gated; else behind norms alone."""
        return options.gated

    @classmethod
    def equals_resnet_behind_norms(cls, options: DeltaOptions) -> bool:
        """Always: the mean of the outputs that is added is a share of the stream."""
        return True

    def __init__(self, wiring: Wiring, options: DeltaOptions) -> None:
        super().__init__(wiring, options, len(wiring.sites) - 1)
        self.g = nn.ParameterList(nn.Parameter(torch.zeros(())) for _ in self.w) if options.gated else None

    @classmethod
    def count(cls, wiring: Wiring, options: DeltaOptions) -> Count:
        """A mix for each layer but the first, its gate if any, and the residual stream's additions."""
        layers, width = len(wiring.sites), wiring.width
        additions = Count(
            (layers - 1) * options.gated, elementwise=((1 + options.gated) * (layers - 1) + layers) * width
        )
        return cls.count_mixes(wiring, options, layers - 1) + additions

    def open(self, *parts: Tensor) -> tuple[Sources, Tensor]:
        """Start from the network's input alone."""
        x = sum_tensors(parts)
        return Sources((_source(x),)), x

    def read(self, t: int, state: tuple[Sources, Tensor]) -> tuple[tuple[Tensor, ...], Any]:
        """Give the stream and the mix of the sources, gated or all of it; the first layer reads the stream."""
        sources, h = state
        if not t:
            return (h,), state
        mix = self.attend(t - 1, sources.all)
        return ((h + mix if self.g is None else torch.addcmul(h, self.g[t - 1], mix)),), state

    def write(self, t: int, state: tuple[Sources, Tensor], y: Tensor) -> tuple[Sources, Tensor]:
        """Add the layer's output to the stream, and to the sum under way."""
        sources, h = state
        return self.append(t, sources, y), h + y

    def close(self, state: tuple[Sources, Tensor]) -> Tensor:
        """Return the stream."""
        return state[1]


def _products(part: Tensor, w: Tensor) -> Tensor:
    """w . v in each head: [..., H] of v [..., H, D / H]."""
    heads = part.shape[-2]
    if heads == 1:  # the same numbers, with less to call
        return F.linear(part.squeeze(-2), w.unsqueeze(0))
    return torch.einsum("...hd,hd->...h", part, w.unflatten(0, (heads, -1)))


def _source(v: Tensor) -> Source:
    return v, torch.rsqrt(v.square().mean(dim=-1, keepdim=True) + EPS)
