"""Manifold-constrained hyper-connections: parallel residual streams that are mixed by doubly stochastic matrices.

Shapes: ... = any leading axes, D = width, N = streams; X is the streams, [..., N, D].
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.count import Count, linear
from search_spaces.errors import UserError
from search_spaces.spec import Axes
from search_spaces.topologies.base import Topology, Wiring, total

HOME, AWAY = 3.0, -3.0
"""What the read of a layer starts from, for the stream that it is at home in and for the others."""


@dataclass(frozen=True, slots=True)
class ManifoldOptions:
    """How wide the residual stream is, and how its mixing is constrained.

    Attributes:
        streams: Parallel streams, n.
        dynamic: Whether weights depend on the input; else they are learned numbers.
        mixed: Whether streams are mixed with each other: without, H_res is the identity.
        rounds: Of Sinkhorn's normalisation, of columns and then of rows.
    """

    streams: int = 4
    dynamic: bool = True
    mixed: bool = True
    rounds: int = 20

    def __post_init__(self) -> None:
        for name, number in (("streams", self.streams), ("rounds", self.rounds)):
            if number < 1:
                raise UserError(f"{name} must be at least 1, got {number}.")


class ManifoldConnection(nn.Module):
    """The weights of one layer: what it reads of each stream, writes to each, and how the streams are mixed."""

    def __init__(self, t: int, width: int, options: ManifoldOptions) -> None:
        super().__init__()
        n, self.rounds = options.streams, options.rounds
        read, write = torch.full((n,), AWAY), torch.zeros(n)
        read[t % n] = HOME
        self.slices = [n, n, n * n] if options.mixed and t else [n, n]
        mix = (2 * HOME * torch.eye(n) - HOME).flatten()
        self.b = nn.Parameter(torch.cat((read, write, mix)[: len(self.slices)]))
        self.map = nn.Linear(n * width, len(self.b), bias=False) if options.dynamic else None
        if self.map is not None:
            nn.init.zeros_(self.map.weight)
            self.alpha = nn.Parameter(torch.full((len(self.slices),), 0.01))

    def forward(self, streams: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """H_pre [..., N], H_post [..., N] and H_res [..., N, N], or None where streams are not mixed."""
        logits = [b.expand(*streams.shape[:-2], -1) for b in self.b.split(self.slices)]
        if self.map is not None:
            flat = streams.flatten(-2)
            made = self.map(F.rms_norm(flat, flat.shape[-1:], eps=1e-20)).split(self.slices, dim=-1)
            pairs = zip(logits, self.alpha.unbind(), made, strict=True)
            logits = [torch.addcmul(logit, alpha, add.type_as(logit)) for logit, alpha, add in pairs]
        n = streams.shape[-2]
        mix = sinkhorn(logits[2].unflatten(-1, (n, n)), self.rounds) if len(logits) > 2 else None
        return logits[0].sigmoid(), 2 * logits[1].sigmoid(), mix


def sinkhorn(logits: Tensor, rounds: int) -> Tensor:
    """exp of logits [..., N, N], divided by the sums of its columns and then of its rows, so many times.

    Rows sum to 1 in the end, and columns nearly (R. Sinkhorn and P. Knopp, 1967). Logarithms throughout, so that
    nothing overflows.
    """
    for _ in range(rounds):
        logits = logits - logits.logsumexp(dim=-2, keepdim=True)
        logits = logits - logits.logsumexp(dim=-1, keepdim=True)
    return logits.exp()


@final
class ManifoldHyperConnections(Topology):
    """Manifold-constrained hyper-connections (DeepSeek, 2025): streams mixed by doubly stochastic matrices.

    With X the streams: the layer reads H_pre X, and then X' = H_res X + H_post^T f(H_pre X). The head reads mean(X).

    With x = vec(X) / rms(vec(X)): H_pre = sigmoid(b_pre + a_pre x phi_pre), H_post = 2 sigmoid(b_post + a_post x
    phi_post), and H_res = Sinkhorn(exp(b_res + a_res x phi_res)): its rows sum to 1 and its columns nearly, so that no
    stream grows or fades by mixing. X starts as n copies of the network's input. The state is X, [..., N, D]; between
    `read` and `write` it is (X mixed, H_post).

    Source: DeepSeek, mHC: Manifold-Constrained Hyper-Connections (arXiv 2512.24880, 2025). Readings taken:

    * The first version gives a = 0.01 and no other start. Taken is what a later one is quoted with: phi = 0,
      b_post = 0, b_res = 6 I - 3, and b_pre = -3 but for 3 at stream t mod n, the home of layer t. Where phi and all b
      are alike for all streams, these never come to differ.
    * The end is not said; hyper-connections sum the streams, DeepSeek-V4 has a learned head. It is their mean, a
      multiple of the sum which a norm takes out again.
    * At the start each layer reads 1.1 times (n = 4) the residual stream, whose norm in front of the layer takes that
      out again: there it starts as the residual network up to the norm's epsilon, and elsewhere it does not.
    * The first layer's H_res mixes copies, which changes nothing: it has none. That of the last is seen by the mean
      through its columns alone, and hardly learns.
    * b and a are not weight-decayed, phi is: as in hyper-connections.
    * `mixed=false` is the identity for H_res, `dynamic=false` has no phi.

    Parameters: `sum(
        (n := streams * (streams * (mixed and t > 0) + 2)) + (n * streams * width + 2 + (mixed and t > 0)) * dynamic
        for t in range(layers)
    )`
    """

    Options: ClassVar[type] = ManifoldOptions
    axes: ClassVar[Axes] = {"streams": (2, 4)}
    searched: ClassVar[bool] = False

    def __init__(self, wiring: Wiring, options: ManifoldOptions) -> None:
        super().__init__()
        self.streams = options.streams
        self.connections = nn.ModuleList(ManifoldConnection(t, wiring.width, options) for t in range(len(wiring.sites)))

    @classmethod
    def count(cls, wiring: Wiring, options: ManifoldOptions) -> Count:
        """b, a and phi; the products x phi, H_pre X and H_res X. Elementwise: b + a x phi, + H_post f, and the mean."""
        n, width = options.streams, wiring.width
        whole = Count(elementwise=n * width)
        for t in range(len(wiring.sites)):
            mixed = options.mixed and t > 0
            weights = n * (n * mixed + 2)
            whole += Count(weights, n * (1 + n * mixed) * width, 2 * n * width)
            if options.dynamic:
                whole += linear(n * width, weights, bias=False) + Count(params=2 + mixed, elementwise=2 * weights)
        return whole

    def open(self, *parts: Tensor) -> Tensor:
        """Copy the network's input to every stream."""
        return torch.stack((total(parts),) * self.streams, dim=-2)  # [..., N, D]

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Any]:
        """Give the layer its share of the streams, and carry the mixed streams and the weights of the output."""
        read, write, mix = self.connections[t](state)
        x = (read.unsqueeze(-2) @ state).squeeze(-2)
        return (x,), (state if mix is None else mix @ state, write)

    def write(self, t: int, state: Any, y: Tensor) -> Tensor:
        """Add the weighted output to each stream."""
        carried, weights = state
        return torch.addcmul(carried, weights.unsqueeze(-1), y.unsqueeze(-2))

    def close(self, state: Tensor) -> Tensor:
        """Return the mean stream."""
        return state.mean(-2)
