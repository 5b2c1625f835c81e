"""Attention residuals: each layer attends over the outputs of all earlier layers instead of summing them.

Legend: v_0 = the network's input, v_i = the output of layer i = 1 .. L, without a skip.
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
from search_spaces.topologies.base import StackSpec, Topology, largest_divisor, sum_tensors

Source = tuple[Tensor, Tensor]
"""A value [..., D] to attend to, and its inverse root mean square [..., 1]."""

EPS = 1e-6
"""Epsilon of the norm of keys."""


class Sources(NamedTuple):
    """The sources of attention: the network's input, sums of complete groups of layers, and the current sum."""

    complete: tuple[Source, ...]
    partial: Source | None = None

    @property
    def all(self) -> tuple[Source, ...]:
        """All sources, oldest first."""
        return self.complete if self.partial is None else (*self.complete, self.partial)


@dataclass(frozen=True, slots=True)
class DepthAttentionOptions:
    """The sources of attention over depth.

    Attributes:
        every: Number of layers whose sum is one source; attention and feed-forward layers count separately. 1 attends
            to each layer; the number of all layers attends to the input and the sum of the rest.
        heads: Number of groups of features, each with its own softmax (MHAR, arXiv 2607.27230). It must divide the
            width.
    """

    every: int = 1
    heads: int = 1

    def __post_init__(self) -> None:
        for name, number in (("every", self.every), ("heads", self.heads)):
            check_at_least(name, number, 1)


@dataclass(frozen=True, slots=True)
class AttentionResidualsOptions(DepthAttentionOptions):
    """The sources of attention over depth, and the scale of their mix.

    Attributes:
        scaled: Whether the mix is multiplied by the number of sources; otherwise it is a weighted mean, as published.
    """

    scaled: bool = True


@dataclass(frozen=True, slots=True)
class DeltaOptions(DepthAttentionOptions):
    """The sources of attention over depth, and how their mix is added.

    Attributes:
        gated: Whether the mix is multiplied by a learned number that starts at 0; otherwise it is added in full.
    """

    gated: bool = True


class DepthAttention(Topology):
    """The common part of both forms: sources, and mixes of them with one query each."""

    in_joint_spaces: ClassVar[bool] = False

    def __init__(self, spec: StackSpec, options: DepthAttentionOptions, queries: int) -> None:
        super().__init__()
        self.every, self.heads = options.every, options.heads
        self.w = nn.ParameterList(nn.Parameter(torch.zeros(spec.width)) for _ in range(queries))

    @classmethod
    def incompatibility_reason(cls, architecture: Architecture, options: DepthAttentionOptions) -> str | None:
        """Refuse widths that the heads do not divide."""
        heads, width = options.heads, architecture.width
        if width % heads == 0:
            return None
        rule = f"heads over depth must divide the width, got heads={heads} and width={width}"
        return f"{rule}. Use heads={largest_divisor(width, heads)}."

    @staticmethod
    def count_mixes(spec: StackSpec, options: DepthAttentionOptions, queries: int) -> Count:
        """Count per query its parameters, its products with all sources and a weighted sum; and the sums of outputs."""
        width, every = spec.width, options.every
        sources = [1 + t // every + (t % every > 0) for t in range(1, queries + 1)]
        sums = sum(t % every > 0 for t in range(len(spec.sites)))
        mixes = sum(weighted_sum(number, width) for number in sources)
        return Count(queries * width, sum(sources) * width, mixes + sums * width)

    def append(self, t: int, sources: Sources, y: Tensor) -> Sources:
        """Return the sources with layer t's output added to the current sum, which is complete after `every` layers."""
        under_way = _source(y if sources.partial is None else sources.partial[0] + y)
        if (t + 1) % self.every:
            return Sources(sources.complete, under_way)
        return Sources((*sources.complete, under_way))

    def attend(self, query: int, sources: tuple[Source, ...]) -> Tensor:
        """Return sum_i a_i v_i, with a softmax over the sources in each head."""
        parts = [v.unflatten(-1, (self.heads, -1)) for v, _ in sources]  # [..., H, D / H]
        scores = [_products(part, self.w[query]) * inverse for part, (_, inverse) in zip(parts, sources, strict=True)]
        shares = torch.stack(scores, dim=-1).softmax(dim=-1).split(1, dim=-1)  # S of [..., H, 1]
        mix: Tensor = shares[0] * parts[0]
        for share, part in zip(shares[1:], parts[1:], strict=True):
            mix = torch.addcmul(mix, share, part)
        return mix.flatten(-2)


@final
class AttentionResiduals(DepthAttention):
    """Attention residuals (Kimi Team, 2026): layers attend over the outputs of all before, in place of their sum.

    Layer t + 1 reads s sum_i a_i v_i over its s sources, with a = softmax_i(w_t . v_i / rms(v_i)) at each position.

    With `every` above 1, the sum of that many layers' outputs is one source. The incomplete sum of the current group is
    a source too. The output head reads a mix with its own query. All w start at 0, so all sources have equal weights.
    With `heads`, each group of features has its own weights.

    Source: Kimi Team, Attention Residuals (arXiv 2603.15031, 2026). Differences and choices:

    * The published mix is sum_i a_i v_i, without the factor s. A norm before a layer or the output head removes the
      factor, forward and backward, up to its epsilon. So before norms this is the published network. Without such norms
      the factor makes it start as the residual network; `scaled=false` is the published mix there too.
    * The paper normalizes keys with a learned gain. Only its product with w matters, so it is merged with w.
    * The first layer has one source, and so no query. The published code has one there that never learns.
    * Keys are normalized over all features, for any number of heads.
    * `every` counts layers, as the paper does ("one query per layer" means attention and feed-forward each). Kimi K3
      counts pairs of them.
    * w is not weight-decayed, since decay would pull towards the mean. The paper does not say.

    The state is the sources, each with its inverse root mean square, which is computed once.

    Parameters: `layers * width`
    """

    Options: ClassVar[type] = AttentionResidualsOptions
    axes: ClassVar[Axes] = {"every": (1, 4), "heads": (1, 4)}

    @classmethod
    def equals_resnet(cls, options: AttentionResidualsOptions) -> bool:
        """Return whether it is scaled; otherwise the network ends with a fraction of the residual network's output."""
        return options.scaled

    def __init__(self, spec: StackSpec, options: AttentionResidualsOptions) -> None:
        super().__init__(spec, options, len(spec.sites))
        self.scaled = options.scaled

    @classmethod
    def count(cls, spec: StackSpec, options: AttentionResidualsOptions) -> Count:
        return cls.count_mixes(spec, options, len(spec.sites))

    def open(self, *embeddings: Tensor) -> Sources:
        return Sources((_source(sum_tensors(embeddings)),))

    def read(self, t: int, state: Sources) -> tuple[tuple[Tensor, ...], Sources]:
        return ((self._mix(t - 1, state) if t else state.complete[0][0]),), state

    def write(self, t: int, state: Sources, y: Tensor) -> Sources:
        return self.append(t, state, y)

    def close(self, state: Sources) -> Tensor:
        return self._mix(len(self.w) - 1, state)

    def _mix(self, query: int, state: Sources) -> Tensor:
        mix = self.attend(query, state.all)
        return len(state.all) * mix if self.scaled else mix


@final
class AttentionResidualsDelta(DepthAttention):
    """Delta attention residuals (Luo et al., 2026): the mix over depth is added to the residual stream.

    Layer t + 1 reads h_t + g_t sum_i a_i v_i, with a as in attention residuals and h_t the residual stream.

    The output head reads the residual stream alone. Each layer has a number g_t, which starts at 0: the residual
    network. Before norms this start is a saddle. With w = 0 the mix is a multiple of h_t, and a norm removes its scale.
    So g receives no gradient, nor does w while g is 0, except through the norm's epsilon and rounding. AdamW turns
    these into steps, SGD does not. With `gated=false` g is fixed at 1: before norms this is the same network at
    initialization, and all of it learns.

    Source: Luo, Cai and Hu, Delta Attention Residuals (arXiv 2605.18855, 2026), and the official code. The code trains
    without a gate by default; its option `learnable_alpha` is a gate that starts at 0. Differences and choices:

    * The default is gated, since it then starts as the residual network in every case; the code's runs are
      `gated=false`.
    * w starts at 0, as in attention residuals; the code draws it like all weights.
    * The first layer, whose only source is h itself, has no query and no gate; in the code it has no source.
    * With `every` above 1 the incomplete sum is a source, as in attention residuals. In the code it is not, and each
      source is the change of the stream since the last one.
    * The learned gain of keys is merged with w. Neither w nor g is weight-decayed, as in attention residuals; the code
      decays all parameters.

    The state is (sources, h).

    Parameters: `(layers - 1) * (width + gated)`
    """

    Options: ClassVar[type] = DeltaOptions
    axes: ClassVar[Axes] = {"every": (1, 4), "gated": (True, False)}

    @classmethod
    def equals_resnet(cls, options: DeltaOptions) -> bool:
        """Return whether it is gated; otherwise equality needs norms."""
        return options.gated

    @classmethod
    def equals_resnet_with_norms(cls, options: DeltaOptions) -> bool:
        """Return True: the mix added at initialization is a multiple of the stream."""
        return True

    def __init__(self, spec: StackSpec, options: DeltaOptions) -> None:
        super().__init__(spec, options, len(spec.sites) - 1)
        self.g = nn.ParameterList(nn.Parameter(torch.zeros(())) for _ in self.w) if options.gated else None

    @classmethod
    def count(cls, spec: StackSpec, options: DeltaOptions) -> Count:
        """Count a mix per layer except the first, its gate if any, and the additions to the residual stream."""
        layers, width = len(spec.sites), spec.width
        additions = Count(
            (layers - 1) * options.gated, elementwise=((1 + options.gated) * (layers - 1) + layers) * width
        )
        return cls.count_mixes(spec, options, layers - 1) + additions

    def open(self, *embeddings: Tensor) -> tuple[Sources, Tensor]:
        x = sum_tensors(embeddings)
        return Sources((_source(x),)), x

    def read(self, t: int, state: tuple[Sources, Tensor]) -> tuple[tuple[Tensor, ...], Any]:
        """Return the stream plus the mix; the first layer reads the stream."""
        sources, h = state
        if not t:
            return (h,), state
        mix = self.attend(t - 1, sources.all)
        return ((h + mix if self.g is None else torch.addcmul(h, self.g[t - 1], mix)),), state

    def write(self, t: int, state: tuple[Sources, Tensor], y: Tensor) -> tuple[Sources, Tensor]:
        sources, h = state
        return self.append(t, sources, y), h + y

    def close(self, state: tuple[Sources, Tensor]) -> Tensor:
        return state[1]


def _products(part: Tensor, w: Tensor) -> Tensor:
    """Return w . v in each head: [..., H] for v [..., H, D / H]."""
    heads = part.shape[-2]
    if heads == 1:  # the same numbers with fewer operations
        return F.linear(part.squeeze(-2), w.unsqueeze(0))
    return torch.einsum("...hd,hd->...h", part, w.unflatten(0, (heads, -1)))


def _source(v: Tensor) -> Source:
    return v, torch.rsqrt(v.square().mean(dim=-1, keepdim=True) + EPS)
