"""ANCRe: how fast linear networks learn, depending on their shortcuts.

The case study's network is h_j = W_j h_{j-1} + the sum of h_i over shortcuts i:j, with h_0 = the input. The loss is
half the squared distance of h_K from A times the input. The paper gives neither sizes nor the target. Here d = 10, the
input is whitened (as its theorems assume), and A has entries of variance 1 / d. Weights start with standard deviation
0.01, and gradient descent takes 200 steps at rate 0.1. ANCRe's shortcuts are p_ij = softmax(c / tau), learned at the
same rate.

Shapes: S = seeds, which train side by side, d = features.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from nas.papers.claims import Claim, Experiment, Values

_FEATURES, _SCALE, _RATE, _STEPS = 10, 0.01, 0.1, 200


@dataclass(frozen=True, slots=True)
class LinearNet:
    """A linear network.

    Attributes:
        layers: K.
        skips: Its shortcuts, (from, to).
        temperature: ANCRe's tau; None if shortcuts are fixed.
    """

    layers: int
    skips: tuple[tuple[int, int], ...] = ()
    temperature: float | None = None


NETS: Mapping[str, LinearNet] = {
    "none of 2": LinearNet(2),
    "none of 3": LinearNet(3),
    "cascaded": LinearNet(3, ((0, 1), (1, 2), (2, 3))),
    "0:1": LinearNet(3, ((0, 1),)),
    "0:2": LinearNet(3, ((0, 2),)),
    "ANCRe 0.1": LinearNet(3, temperature=0.1),
    "ANCRe 0.01": LinearNet(3, temperature=0.01),
    "0:1 of 4": LinearNet(4, ((0, 1),)),
    "0:3 of 4": LinearNet(4, ((0, 3),)),
    "1:2+2:3 of 4": LinearNet(4, ((1, 2), (2, 3))),
    "0:2+2:3 of 4": LinearNet(4, ((0, 2), (2, 3))),
}
"""Name of a network in claims -> the network."""

_QUANTITY = "decades by which its loss is below the other's after 200 steps"
_FASTER = (
    ("none of 2", "none of 3", "case study 3.1", "without shortcuts, 2 layers learn faster than 3"),
    ("cascaded", "none of 3", "case study 3.1", "a shortcut around each layer is faster than none"),
    ("0:1", "cascaded", "case study 3.1", "the shortcut 0:1 alone is faster than one around each layer"),
    ("0:2", "0:1", "theorems 3.2, 3.3", "the shortcut 0:2 is faster than 0:1"),
    ("0:3 of 4", "0:1 of 4", "appendix B.4", "of 4 layers, the shortcut 0:3 is faster than 0:1"),
    ("1:2+2:3 of 4", "0:3 of 4", "section 4", "of 4 layers, 1:2 with 2:3 is the fast layout: faster than 0:3"),
    ("0:2+2:3 of 4", "0:3 of 4", "official code", "of 4 layers, 0:2 with 2:3 is the fast layout: faster than 0:3"),
    ("ANCRe 0.1", "cascaded", "section 4.1", "ANCRe is faster than a shortcut around each layer; tau = 0.1"),
    ("ANCRe 0.1", "0:2", "section 4.1", "ANCRe is on a par with the best layout, 0:2; tau = 0.1, the text's"),
    ("ANCRe 0.01", "0:2", "section 4.1", "ANCRe is on a par with the best layout, 0:2; tau = 0.01, the code's"),
)
_PAR = "on a par"


class Shortcuts(Experiment):
    """Case study 3.1 and its consequences, by the loss after some steps."""

    paper = "ancre"
    setting = "linear networks of 10 features, 200 steps of gradient descent, 20 seeds"
    claims = tuple(
        Claim(
            name=f"{fast} below {slow}",
            source=source,
            statement=statement,
            quantity=_QUANTITY,
            low=-1.0 if _PAR in statement else 0.0,  # within a decade is on a par
        )
        for fast, slow, source, statement in _FASTER
    )

    def __init__(self, seeds: int = 20) -> None:
        self.seeds = seeds

    def values(self) -> Values:
        """Train all networks once."""
        decades = {name: losses(net, self.seeds).log10() for name, net in NETS.items()}
        return {f"{fast} below {slow}": (decades[slow] - decades[fast]).tolist() for fast, slow, *_ in _FASTER}


def losses(net: LinearNet, seeds: int) -> Tensor:
    """Return the loss after the last step, [S], clamped at double precision."""
    return curve(net, seeds)[-1]


def curve(net: LinearNet, seeds: int) -> Tensor:
    """Return the loss before each step and after the last, [steps + 1, S], clamped at double precision."""
    generator = torch.Generator().manual_seed(0)
    shape = (seeds, _FEATURES, _FEATURES)

    def draw() -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    target = draw() / _FEATURES**0.5
    weights = [(draw() * _SCALE).requires_grad_() for _ in range(net.layers)]
    learned = net.temperature is not None
    logits = [target.new_zeros(seeds, j, 1, 1).requires_grad_() for j in range(1, net.layers + 1)] if learned else []
    losses = []
    for _ in range(_STEPS):
        loss = _loss(net, weights, logits, target)
        losses.append(loss.detach())
        gradients = torch.autograd.grad(loss.sum(), weights + logits)
        with torch.no_grad():
            for parameter, gradient in zip(weights + logits, gradients, strict=True):
                parameter -= _RATE * gradient
    losses.append(_loss(net, weights, logits, target).detach())
    return torch.stack(losses).clamp_min(1e-28)


def _loss(net: LinearNet, weights: list[Tensor], logits: list[Tensor], target: Tensor) -> Tensor:
    outputs = [torch.eye(_FEATURES, dtype=torch.float64).expand_as(target)]
    for j, weight in enumerate(weights, 1):
        h = weight @ outputs[-1]
        if net.temperature is not None:
            shares = torch.softmax(logits[j - 1] / net.temperature, dim=1)
            h = h + sum(shares[:, i] * outputs[i] for i in range(j))
        else:
            h = h + sum(outputs[i] for i, to in net.skips if to == j)
        outputs.append(h)
    return 0.5 * (outputs[-1] - target).square().sum((1, 2))
