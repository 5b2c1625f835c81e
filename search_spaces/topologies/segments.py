"""Segments of blocks, each with its own topology: the output of a segment is the input of the next."""

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar, Literal, final

from torch import Tensor, nn

from search_spaces.support.count import Count
from search_spaces.topologies.base import InputMode, StackSpec, Topology


@dataclass(frozen=True, slots=True)
class LayerSegment:
    """Consecutive layers with one topology.

    Attributes:
        topology: The class of the topology.
        options: Its options.
        layers: Number of layers.
        head_dim: Features of one head in these layers.
    """

    topology: type[Topology]
    options: Any
    layers: int
    head_dim: int


@final
class Segments(Topology):
    """Topologies in sequence: y = close_R(...(open_2(close_1(...(open_1(embeddings)))))).

    Each segment is the network that it would be alone with its layers; only the first may have more than one embedding.
    The state is that of the current segment.
    """

    Options: ClassVar[type] = tuple

    def __init__(self, spec: StackSpec, options: tuple[LayerSegment, ...]) -> None:
        super().__init__()
        self.segments = nn.ModuleList(
            segment.topology(part, segment.options)
            for segment, part in zip(options, segment_specs(spec, options), strict=True)
        )
        self.segment_and_index = [
            (r, t) for r, segment in enumerate(options) for t in range(segment.layers)
        ]  # of each layer
        self.takes_values = any(segment.takes_values for segment in self.segments)  # type: ignore[misc]  # of this network
        self.input_mode = self.segments[-1].input_mode  # type: ignore[assignment]  # a Topology's

    @classmethod
    def count(cls, spec: StackSpec, options: tuple[LayerSegment, ...]) -> Count:
        parts = zip(options, segment_specs(spec, options), strict=True)
        return sum((segment.topology.count(part, segment.options) for segment, part in parts), Count())

    def input_mode_at(self, t: int) -> InputMode:
        return self.segments[self.segment_and_index[t][0]].input_mode_at(t)  # type: ignore[operator, no-any-return]  # a Topology's

    def recomputes(self, t: int) -> Literal["read", "write"]:
        segment, inside = self.segment_and_index[t]
        return self.segments[segment].recomputes(inside)  # type: ignore[operator, no-any-return]  # a Topology's

    def coefficients(self) -> dict[str, Tensor]:
        """Return the coefficients of all segments, prefixed with the segment's number from 1."""
        return {
            f"run {number}: {name}": weights
            for number, segment in enumerate(self.segments, start=1)
            for name, weights in segment.coefficients().items()  # type: ignore[operator]  # a Topology's
        }

    def open(self, *embeddings: Tensor) -> Any:
        return self.segments[0].open(*embeddings)  # type: ignore[operator]  # a Topology's

    def read(self, t: int, state: Any) -> tuple[tuple[Tensor, ...], Any]:
        """Read from the layer's segment; at its first layer, open it with the output of the segment before."""
        segment, inside = self.segment_and_index[t]
        if segment and inside == 0:
            state = self.segments[segment].open(self.segments[segment - 1].close(state))  # type: ignore[operator]  # Topologies'
        return self.segments[segment].read(inside, state)  # type: ignore[operator, no-any-return]  # a Topology's

    def values(self, t: int, state: Any, v: Tensor | None) -> tuple[Tensor | None, Any]:
        segment, inside = self.segment_and_index[t]
        return self.segments[segment].values(inside, state, v)  # type: ignore[operator, no-any-return]  # a Topology's

    def init_layers(self, layers: nn.ModuleList) -> None:
        for number, segment in enumerate(self.segments):
            inside = (
                layer for layer, (index, _) in zip(layers, self.segment_and_index, strict=True) if index == number
            )
            segment.init_layers(nn.ModuleList(inside))  # type: ignore[operator]  # a Topology's

    def write(self, t: int, state: Any, y: Tensor) -> Any:
        segment, inside = self.segment_and_index[t]
        return self.segments[segment].write(inside, state, y)  # type: ignore[operator]  # a Topology's

    def close(self, state: Any) -> Tensor:
        return self.segments[-1].close(state)  # type: ignore[operator, no-any-return]  # a Topology's


def segment_specs(spec: StackSpec, segments: tuple[LayerSegment, ...]) -> list[StackSpec]:
    """Return the part of the network that belongs to each segment."""
    ends = list(accumulate(segment.layers for segment in segments))
    blocks = [0, *accumulate(site.starts_block for site in spec.sites)]  # number of blocks before each layer
    return [
        replace(
            spec,
            sites=spec.sites[end - segment.layers : end],
            head_dim=segment.head_dim,
            num_embeddings=spec.num_embeddings if end == segment.layers else 1,
            hidden=spec.hidden[blocks[end - segment.layers] : blocks[end]],
        )
        for segment, end in zip(segments, ends, strict=True)
    ]
