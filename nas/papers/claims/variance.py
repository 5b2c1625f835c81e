"""Residual Matrix Transformers: how variance passes through the store and load operations of the residual stream.

Shapes are the paper's, GPT-2 medium's: width D = 1024, R = 16 vectors of V = 64, keys of K = 64 (which gives table 2's
0.4 and 1.6), hidden layers of 4096. Weights start Xavier-normal, as the paper assumes. Inputs and gradients of outputs
are standard normal; each number is output variance divided by input variance.
"""

import statistics
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from nas.papers.claims import Claim, Experiment, Values
from search_spaces.topologies.rmt import Load, MatrixStore

_WIDTH, _HIDDEN, _RANK, _LENGTH, _KEYS = 1024, 4096, 16, 64, 64
_DRAWS, _POSITIONS, _TOKENS = 250, 4, 256
_HALF_A_DIGIT = 0.005  # two decimals are printed without final zeros: 1.14 and 0.4

_TABLE_2: Mapping[str, tuple[float, float]] = {
    "attention stores, RMT": (0.4, 1.6),
    "attention stores, transformer": (1.0, 1.0),
    "attention loads, RMT": (1.14, 0.86),
    "attention loads, transformer": (0.5, 1.5),
    "feed-forward stores, RMT": (1.0, 1.0),
    "feed-forward stores, transformer": (1.6, 0.4),
    "feed-forward loads, RMT": (1.0, 1.0),
    "feed-forward loads, transformer": (0.4, 1.6),
}
"""Table 2: variance ratios forward and backward."""

_WHAT = {"attention": "the maps between stream and heads", "feed-forward": "the map of the layer, and RMT's keys there"}

Move = Callable[[Tensor], Tensor]


class Variance(Experiment):
    """Table 2, measured on the modules of topology rmt and on linear maps."""

    paper = "rmt"
    setting = "modules of topology rmt and linear maps at GPT-2 medium's shape, Xavier-normal; 24 seeds"
    claims = tuple(
        Claim(
            name=f"{name}, {way}",
            source="table 2",
            statement=f"variance is multiplied by {number:g}",
            quantity=f"variance out over variance in, {_WHAT[name.partition(' ')[0]]}",
            low=number - _HALF_A_DIGIT,
            high=number + _HALF_A_DIGIT,
        )
        for name, numbers in _TABLE_2.items()
        for way, number in zip(("forward", "backward"), numbers, strict=True)
    )

    def __init__(self, seeds: int = 24) -> None:
        self.seeds = seeds

    def values(self) -> Values:
        """Measure all claims with each seed."""
        ratios = [_variance_ratios(seed) for seed in range(self.seeds)]
        return {claim.name: [ratio[claim.name] for ratio in ratios] for claim in self.claims}


def _variance_ratios(seed: int) -> dict[str, float]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        up, down = _linear(_WIDTH, _HIDDEN), _linear(_HIDDEN, _WIDTH)
        ratios = {
            "attention stores, RMT": _mean_ratios_over_keys(_store, (_POSITIONS, _WIDTH)),
            "attention stores, transformer": _ratios(_linear(_WIDTH, _WIDTH), (_TOKENS, _WIDTH)),
            "attention loads, RMT": _mean_ratios_over_keys(lambda: _load(3), (_POSITIONS, _LENGTH, _KEYS)),
            "attention loads, transformer": _ratios(_linear(_WIDTH, 3 * _WIDTH), (_TOKENS, _WIDTH)),
            "feed-forward stores, RMT": _compose_ratios(down, _mean_ratios_over_keys(_store, (_POSITIONS, _WIDTH))),
            "feed-forward stores, transformer": _ratios(down, (_TOKENS, _HIDDEN)),
            "feed-forward loads, RMT": _compose_ratios(
                up, _mean_ratios_over_keys(lambda: _load(1), (_POSITIONS, _LENGTH, _KEYS))
            ),
            "feed-forward loads, transformer": _ratios(up, (_TOKENS, _WIDTH)),
        }
    return {
        f"{name}, {way}": ratio
        for name, both in ratios.items()
        for way, ratio in zip(("forward", "backward"), both, strict=True)
    }


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.xavier_normal_(layer.weight)
    return layer


def _store() -> nn.Module:
    return MatrixStore(_RANK, _KEYS)


def _load(ports: int) -> Move:
    module = Load(ports, _RANK, _KEYS)
    return lambda matrix: torch.cat(module(matrix), dim=-1)


def _mean_ratios_over_keys(build: Callable[[], Move], shape: tuple[int, ...]) -> tuple[float, float]:
    """Return mean ratios over many draws of the keys, which are few numbers."""
    draws = [_ratios(build(), shape) for _ in range(_DRAWS)]
    return statistics.fmean(forward for forward, _ in draws), statistics.fmean(backward for _, backward in draws)


def _compose_ratios(layer: nn.Linear, keys: tuple[float, float]) -> tuple[float, float]:
    """Return the ratios of a layer followed by independent keys."""
    forward, backward = _ratios(layer, (_TOKENS, layer.in_features))
    return forward * keys[0], backward * keys[1]


def _ratios(move: Move, shape: tuple[int, ...]) -> tuple[float, float]:
    """Return the mean-square ratio of output to input, and of the input's gradient to the output's."""
    x = torch.randn(shape, requires_grad=True)
    y = move(x)
    gradient = torch.randn_like(y)
    (input_gradient,) = torch.autograd.grad(y, x, gradient)
    return (_square(y) / _square(x)).item(), (_square(input_gradient) / _square(gradient)).item()


def _square(tensor: Tensor) -> Tensor:
    return tensor.detach().square().mean()
