"""More plug-ins: a topology and a task with uncounted operators, and samplers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import optuna
import torch
from optuna.distributions import BaseDistribution, IntDistribution
from torch import Tensor, nn

from nas import Proposer, SearchState
from search_spaces import Architecture, Axes, Count, Handlers, Shape, StackSpec, Topology, sum_tensors
from stripes import Stripes


def lstm_macs(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    """Every weight matrix once for each position: after x [T, N, I] and both states come weights and biases."""
    positions = math.prod(inputs[0][:2])
    return positions * sum(math.prod(shape) for shape in inputs[3:] if len(shape) == 2)


@dataclass(frozen=True)
class RecallOptions:
    """The LSTM's layers."""

    layers: int = 1


@final
class Recall(Topology):
    """An LSTM runs over the depth: x_{t+1} = x_t + h_t, where (h_t, c_t) = LSTM(f_t(x_t), c_{t-1}).

    The state is (x, (h, c)), one LSTM for all positions.
    """

    Options: ClassVar[type] = RecallOptions
    axes: ClassVar[Axes] = {"layers": (1, 2)}
    handlers: ClassVar[Handlers] = {"aten::lstm": lstm_macs}

    def __init__(self, spec: StackSpec, options: RecallOptions) -> None:
        super().__init__()
        self.lstm = nn.LSTM(spec.width, spec.width, options.layers)

    @classmethod
    def count(cls, spec: StackSpec, options: RecallOptions) -> Count:
        """Four gates of two matrices and two biases in each layer of the LSTM, run once a layer of the network."""
        weights = options.layers * 8 * spec.width * spec.width
        biases = options.layers * 8 * spec.width
        return Count(weights + biases, len(spec.sites) * weights, len(spec.sites) * spec.width)

    def open(self, *embeddings: Tensor) -> Any:
        """Start from the sum of the embeddings without memory."""
        return sum_tensors(embeddings), None

    def read(self, t: int, state: Any) -> tuple[tuple[Tensor, ...], Any]:
        return (state[0],), state

    def write(self, t: int, state: Any, y: Tensor) -> Any:
        """Take one step of the LSTM."""
        x, memory = state
        h, memory = self.lstm(y.reshape(1, -1, y.shape[-1]), memory)
        return x + h.view_as(y), memory

    def close(self, state: Any) -> Tensor:
        return state[0]


class Spectrum(nn.Module):
    """The real part of a filtered spectrum: [B, D] to [B, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.filter = nn.Parameter(torch.ones(width // 2 + 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.irfft(torch.fft.rfft(x) * self.filter, n=x.shape[-1])


class Untaught(Stripes):
    """Stripes by spectra, whose FFTs have no handlers."""

    name = "untaught-waves"

    def build(self, architecture: Architecture) -> nn.Module:
        """Numbers [B, 1] to class scores [B, 2]."""
        return nn.Sequential(nn.Linear(1, 16), Spectrum(16), nn.Linear(16, 2))


def fft_macs(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    """N log2 N for each of the sequences, a fair count of the butterflies' products."""
    length = max(inputs[0][-1], outputs[0][-1])
    return math.prod(inputs[0][:-1]) * length * round(math.log2(length))


class Waves(Untaught):
    """The same with handlers."""

    name = "waves"
    handlers: ClassVar[Handlers] = {"aten::fft_rfft": fft_macs, "aten::fft_irfft": fft_macs}


class First(Proposer):
    """The first untried candidate in the space's order."""

    def propose(self, state: SearchState) -> int:
        return int(state.new[0])


class Reversed(optuna.samplers.RandomSampler):
    """An Optuna sampler of a package that draws only the depth."""

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, BaseDistribution]:
        """The depth, and a parameter that is no axis of this space."""
        return {"depth": IntDistribution(1, 8, log=True), "speed": IntDistribution(1, 8)}

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        """Propose the largest depth."""
        assert set(search_space) == {"depth"}, search_space
        return {"depth": 8}


class Stubborn(Proposer):
    """Always proposes the same index, valid or not."""

    def propose(self, state: SearchState) -> int:
        return len(state.coordinates)


class Failing(Proposer):
    """Raises an error."""

    def propose(self, state: SearchState) -> int:
        return {}["nothing"]


class Demanding(Proposer):
    """Needs an argument."""

    def __init__(self, temper: float) -> None:
        self.temper = temper

    def propose(self, state: SearchState) -> int:
        raise NotImplementedError
