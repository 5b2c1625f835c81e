"""DenseFormer: a weighted average over depth after each block.

Legend: x_0 = the network's input, x_{i+1} = the output of block i = 0 .. for y_{i-1}, with its skip; y_{-1} = x_0.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count, weighted_sum
from search_spaces.support.errors import check_at_least
from search_spaces.topologies.base import StackSpec, Topology, pad_rows, sum_tensors

State = tuple[dict[int, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class DenseFormerOptions:
    """The averages: after which blocks, and over which states.

    Attributes:
        dilation: Each average takes every `dilation`-th state, counted back from the latest.
        period: An average follows every `period`-th block.
    """

    dilation: int = 1
    period: int = 1

    def __post_init__(self) -> None:
        for name, number in (("dilation", self.dilation), ("period", self.period)):
            check_at_least(name, number, 1)


@final
class DenseFormer(Topology):
    """DenseFormer (Pagliardini et al., 2024): after each block a weighted average of all states.

    y_i = sum_j alpha_ij x_j over j <= i + 1, j = i + 1 (mod dilation), where (i + 1) % period == 0; else x_{i+1}.

    At initialization the weight of the latest state is 1 and all others are 0. The output head reads the last y.

    Source: Pagliardini et al., DenseFormer (2024), "depth-weighted average", and the official code (epfml/DenseFormer).
    With dilation 1 and period 1 it spans what GRN-v1 spans, in states instead of outputs. It lacks only the weight of
    the input before block 1. Weights are not decayed; in the code they are.

    The state is ({j: x_j} of states that a later average takes, y).

    Parameters: `sum((i + 1 + dilation) // dilation for i in range(blocks) if (i + 1) % period == 0)`
    """

    Options: ClassVar[type] = DenseFormerOptions
    compile_options: ClassVar[dict[str, Any]] = {"max_fusion_size": 16}  # for the same reason as in ANCRe
    granularity: ClassVar[Literal["layer", "block"]] = "block"

    @classmethod
    def equals_resnet(cls, options: DenseFormerOptions) -> bool:
        return True

    def __init__(self, spec: StackSpec, options: DenseFormerOptions) -> None:
        super().__init__()
        self.sources = _sources(len(spec.sites), options)
        self.later_sources = [set().union(*self.sources[t:]) for t in range(len(self.sources) + 1)]
        self.alpha = nn.ParameterList(
            nn.Parameter(torch.eye(len(sources), 1).flatten()) for sources in self.sources if sources
        )
        self.period = options.period

    @classmethod
    def count(cls, spec: StackSpec, options: DenseFormerOptions) -> Count:
        averages = [len(sources) for sources in _sources(len(spec.sites), options) if sources]
        adding = len(spec.sites) * spec.width
        return Count(
            params=sum(averages), elementwise=adding + sum(weighted_sum(number, spec.width) for number in averages)
        )

    def coefficients(self) -> dict[str, Tensor]:
        """Return alpha of each average, with a column per state j."""
        rows, averages = [], iter(self.alpha)
        for sources in self.sources:
            row = torch.full((max(sources, default=-1) + 1,), torch.nan, dtype=torch.float64)
            if sources:
                row[list(sources)] = next(averages).to(row)
            rows.append(row)
        return {"alpha": pad_rows(rows)}

    def open(self, *embeddings: Tensor) -> State:
        x = sum_tensors(embeddings)
        return {0: x} if 0 in self.later_sources[0] else {}, x

    def read(self, t: int, state: State) -> tuple[tuple[Tensor, ...], State]:
        return (state[1],), state

    def write(self, t: int, state: State, y: Tensor) -> State:
        earlier, x = state
        x = x + y
        states = {**earlier, t + 1: x}
        memory = {j: states[j] for j in states if j in self.later_sources[t + 1]}
        if not self.sources[t]:
            return memory, x
        first, *rest = self.alpha[(t + 1) // self.period - 1].unbind()
        average = first * x
        for weight, j in zip(rest, self.sources[t][1:], strict=True):
            average = torch.addcmul(average, states[j], weight)
        return memory, average

    def close(self, state: State) -> Tensor:
        return state[1]


def _sources(blocks: int, options: DenseFormerOptions) -> list[range]:
    """Return the states of each block's average, latest first; empty where there is no average."""
    return [range(i + 1, -1, -options.dilation) if (i + 1) % options.period == 0 else range(0) for i in range(blocks)]
