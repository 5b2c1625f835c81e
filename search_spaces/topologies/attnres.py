"""Attention residuals: every layer attends over the outputs of all layers before it, in place of their sum.

Legend: v_0 = the network's input, v_i = the output of layer i = 1 .. L without its input.
Shapes: ... = any leading axes, D = width, S = sources.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.count import Count, weighted_sum
from search_spaces.errors import UserError
from search_spaces.spec import Axes
from search_spaces.topologies.base import Topology, Wiring, total

Source = tuple[Tensor, Tensor]
"""What can be attended to, [..., D], and one over its root mean square, [..., 1]."""
State = tuple[tuple[Source, ...], Source | None]
"""The input and the sums of all blocks that are complete, and the sum of the one that is not."""

EPS = 1e-6
"""Of the norm of keys."""


@dataclass(frozen=True, slots=True)
class AttentionResidualsOptions:
    """What is attended to.

    Attributes:
        every: How many layers are one source, their sum: 1 attends to each, and as many as there are to the input and
            the rest. They are counted one by one, attention and feed-forward.
    """

    every: int = 1

    def __post_init__(self) -> None:
        if self.every < 1:
            raise UserError(f"every must be at least 1, got {self.every}.")


@final
class AttentionResiduals(Topology):
    """Layer t + 1 reads s sum_i a_i v_i over its s sources, a = softmax_i(w_t . v_i / rms(v_i)), at each position.

    With `every` above 1 the outputs of so many layers are one source, their sum, which begins anew after them; of the
    one under way the sum so far is a source. The head reads such a mix with a query of its own. All w are zeros at the
    start: the mix is the mean of the sources.

    Source: Kimi Team, Attention Residuals (arXiv 2603.15031, 2026). Readings taken:

    * The published mix is sum_i a_i v_i. Here it is s times that, a factor which the norm in front of a layer, or of
      the head, takes out again, forward and backward (up to its epsilon); so behind norms this is the published
      network. Where no norm follows it starts as the residual network, which without the factor it would not.
    * The paper's keys are normed with a learned gain, which is one with w here: their product is what counts.
    * The first layer has one source, and so no query: published code has one there, which never learns.
    * A block is counted in layers, as in the paper ("one query per layer" means attention and feed-forward each);
      Kimi K3 counts pairs of them.
    * w is not weight-decayed, of which the paper says nothing: decay would pull to the mean.

    The state is (sources with what norms them, the unfinished one or None); what norms a source is computed once.

    Parameters: `layers * width`
    """

    Options: ClassVar[type] = AttentionResidualsOptions
    axes: ClassVar[Axes] = {"every": (1, 4)}
    equals_resnet: ClassVar[bool] = True
    searched: ClassVar[bool] = False

    def __init__(self, wiring: Wiring, options: AttentionResidualsOptions) -> None:
        super().__init__()
        self.every = options.every
        self.w = nn.ParameterList(nn.Parameter(torch.zeros(wiring.width)) for _ in wiring.sites)

    @classmethod
    def count(cls, wiring: Wiring, options: AttentionResidualsOptions) -> Count:
        """A query for each layer but the first, and the head's; products with all sources, and their weighted sums."""
        width, every = wiring.width, options.every
        sources = [1 + t // every + (t % every > 0) for t in range(1, len(wiring.sites) + 1)]
        sums = sum(t % every > 0 for t in range(len(wiring.sites)))  # an output that is added to others
        mixes = Count(len(sources) * width, sum(sources) * width, sum(weighted_sum(s, width) for s in sources))
        return mixes + Count(elementwise=sums * width)

    def open(self, *parts: Tensor) -> State:
        """Start from the network's input alone."""
        return (_source(total(parts)),), None

    def read(self, t: int, state: State) -> tuple[tuple[Tensor, ...], State]:
        """Mix the sources; the first layer reads the only one."""
        return ((state[0][0][0] if t == 0 else self._mixed(t - 1, state)),), state

    def write(self, t: int, state: State, y: Tensor) -> State:
        """Add the layer's output to the sum under way, which is complete after so many layers."""
        complete, partial = state
        under_way = _source(y if partial is None else partial[0] + y)
        return ((*complete, under_way), None) if (t + 1) % self.every == 0 else (complete, under_way)

    def close(self, state: State) -> Tensor:
        """Mix once more."""
        return self._mixed(len(self.w) - 1, state)

    def _mixed(self, query: int, state: State) -> Tensor:
        complete, partial = state
        sources = complete if partial is None else (*complete, partial)
        w = self.w[query].unsqueeze(0)  # [1, D]
        scores = torch.cat([F.linear(v, w) * inverse for v, inverse in sources], dim=-1)  # [..., S]
        shares = (len(sources) * scores.softmax(dim=-1)).split(1, dim=-1)
        mixed: Tensor = shares[0] * sources[0][0]
        for share, (v, _) in zip(shares[1:], sources[1:], strict=True):
            mixed = torch.addcmul(mixed, share, v)
        return mixed


def _source(v: Tensor) -> Source:
    return v, torch.rsqrt(v.square().mean(dim=-1, keepdim=True) + EPS)
