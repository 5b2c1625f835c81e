"""Runs of blocks, each with its own topology: the output of a run is the input of the next."""

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar, Literal, final

from torch import Tensor, nn

from search_spaces.support.count import Count
from search_spaces.topologies.base import InputMode, StackSpec, Topology


@dataclass(frozen=True, slots=True)
class LayerRun:
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
class Runs(Topology):
    """Topologies in sequence: y = close_R(...(open_2(close_1(...(open_1(embeddings)))))).

    Each run is the network that it would be alone with its layers; only the first may have more than one embedding. The
    state is that of the current run.
    """

    Options: ClassVar[type] = tuple

    def __init__(self, spec: StackSpec, options: tuple[LayerRun, ...]) -> None:
        super().__init__()
        self.runs = nn.ModuleList(
            run.topology(part, run.options) for run, part in zip(options, run_specs(spec, options), strict=True)
        )
        self.run_and_index = [(r, t) for r, run in enumerate(options) for t in range(run.layers)]  # of each layer
        self.takes_values = any(run.takes_values for run in self.runs)  # type: ignore[misc]  # of this network
        self.input_mode = self.runs[-1].input_mode  # type: ignore[assignment]  # a Topology's

    @classmethod
    def count(cls, spec: StackSpec, options: tuple[LayerRun, ...]) -> Count:
        parts = zip(options, run_specs(spec, options), strict=True)
        return sum((run.topology.count(part, run.options) for run, part in parts), Count())

    def input_mode_at(self, t: int) -> InputMode:
        return self.runs[self.run_and_index[t][0]].input_mode_at(t)  # type: ignore[operator, no-any-return]  # a Topology's

    def recomputes(self, t: int) -> Literal["read", "write"]:
        run, inside = self.run_and_index[t]
        return self.runs[run].recomputes(inside)  # type: ignore[operator, no-any-return]  # a Topology's

    def coefficients(self) -> dict[str, Tensor]:
        """Return the coefficients of all runs, prefixed with the run's number from 1."""
        return {
            f"run {number}: {name}": weights
            for number, run in enumerate(self.runs, start=1)
            for name, weights in run.coefficients().items()  # type: ignore[operator]  # a Topology's
        }

    def open(self, *embeddings: Tensor) -> Any:
        return self.runs[0].open(*embeddings)  # type: ignore[operator]  # a Topology's

    def read(self, t: int, state: Any) -> tuple[tuple[Tensor, ...], Any]:
        """Read from the layer's run; at its first layer, open it with the output of the run before."""
        run, inside = self.run_and_index[t]
        if run and inside == 0:
            state = self.runs[run].open(self.runs[run - 1].close(state))  # type: ignore[operator]  # Topologies'
        return self.runs[run].read(inside, state)  # type: ignore[operator, no-any-return]  # a Topology's

    def values(self, t: int, state: Any, v: Tensor | None) -> tuple[Tensor | None, Any]:
        run, inside = self.run_and_index[t]
        return self.runs[run].values(inside, state, v)  # type: ignore[operator, no-any-return]  # a Topology's

    def init_layers(self, layers: nn.ModuleList) -> None:
        for number, run in enumerate(self.runs):
            own = (layer for layer, (index, _) in zip(layers, self.run_and_index, strict=True) if index == number)
            run.init_layers(nn.ModuleList(own))  # type: ignore[operator]  # a Topology's

    def write(self, t: int, state: Any, y: Tensor) -> Any:
        run, inside = self.run_and_index[t]
        return self.runs[run].write(inside, state, y)  # type: ignore[operator]  # a Topology's

    def close(self, state: Any) -> Tensor:
        return self.runs[-1].close(state)  # type: ignore[operator, no-any-return]  # a Topology's


def run_specs(spec: StackSpec, runs: tuple[LayerRun, ...]) -> list[StackSpec]:
    """Return the part of the network that belongs to each run."""
    ends = list(accumulate(run.layers for run in runs))
    blocks = [0, *accumulate(site.starts_block for site in spec.sites)]  # number of blocks before each layer
    return [
        replace(
            spec,
            sites=spec.sites[end - run.layers : end],
            head_dim=run.head_dim,
            num_embeddings=spec.num_embeddings if end == run.layers else 1,
            hidden=spec.hidden[blocks[end - run.layers] : blocks[end]],
        )
        for run, end in zip(runs, ends, strict=True)
    ]
