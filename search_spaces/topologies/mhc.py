"""Manifold-constrained hyper-connections: parallel residual streams, mixed by doubly stochastic matrices.

Shapes: ... = any leading axes, D = width, N = streams; X is the streams, [..., N, D].
"""

from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import Any, ClassVar, Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.support.count import Count, linear
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import StackSpec
from search_spaces.topologies.hyper import MAX_STREAMS, ParallelStreams

Mixing = Literal["sinkhorn", "permutations", "none"]

HOME, AWAY = 3.0, -3.0
"""Initial logits of a layer's read weights: for its home stream and for all others."""

PERMUTATION_LOGIT = -8.0
"""Initial logit of every permutation except the identity, which has 0."""

MAX_PERMUTATION_STREAMS = 6
"""Maximum number of streams with mixing=permutations, which weights n! matrices."""

MAX_ROUNDS = 1000
"""Maximum number of rounds of Sinkhorn normalization."""


@dataclass(frozen=True, slots=True)
class ManifoldOptions:
    """The number of streams, and the constraint on their mixing.

    Attributes:
        streams: Number of parallel streams, n.
        dynamic: Whether weights depend on the input; otherwise they are learned numbers.
        mixing: How streams are mixed. "sinkhorn": by a matrix that Sinkhorn normalization makes nearly doubly
            stochastic. "permutations": by a weighted mean of all n! permutations, which is exactly doubly stochastic.
            "none": not at all.
        rounds: Rounds of Sinkhorn normalization, of columns and then of rows.
    """

    streams: int = 4
    dynamic: bool = True
    mixing: Mixing = "sinkhorn"
    rounds: int = 20

    def __post_init__(self) -> None:
        for name, number, most in (("streams", self.streams, MAX_STREAMS), ("rounds", self.rounds, MAX_ROUNDS)):
            if not 1 <= number <= most:
                rule = f"{name} must be from 1 to {most}, got {number}."
                raise UserError("out-of-range", rule, option=name, value=number, least=1, most=most)
        if self.mixing == "permutations" and self.streams > MAX_PERMUTATION_STREAMS:
            raise UserError(
                "out-of-range",
                f"streams must be at most {MAX_PERMUTATION_STREAMS} with mixing=permutations (n! of them), "
                f"got {self.streams}. Use mixing=sinkhorn.",
                option="streams",
                value=self.streams,
                most=MAX_PERMUTATION_STREAMS,
            )


class ManifoldConnection(nn.Module):
    """The weights of one layer: of reading from each stream, of writing to each, and of mixing them."""

    permutation_matrices: Tensor

    def __init__(self, t: int, width: int, options: ManifoldOptions) -> None:
        super().__init__()
        n, self.rounds = options.streams, options.rounds
        read, write = torch.full((n,), AWAY), torch.zeros(n)
        read[t % n] = HOME
        self.mixing = options.mixing if t else "none"
        mix = mixing_at_start(self.mixing, n)
        self.slices = [len(part) for part in (read, write, mix) if len(part)]
        self.b = nn.Parameter(torch.cat((read, write, mix)))
        self.map = nn.Linear(n * width, len(self.b), bias=False) if options.dynamic else None
        if self.map is not None:
            nn.init.zeros_(self.map.weight)
            self.alpha = nn.Parameter(torch.full((len(self.slices),), 0.01))
        if self.mixing == "permutations":
            self.register_buffer("permutation_matrices", all_permutations(n), persistent=False)

    def forward(self, streams: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return H_pre [..., N], H_post [..., N] and H_res [..., N, N], or None for H_res if streams are not mixed."""
        logits = [b.expand(*streams.shape[:-2], -1) for b in self.b.split(self.slices)]
        if self.map is not None:
            flat = streams.flatten(-2)
            shifts = self.map(F.rms_norm(flat, flat.shape[-1:], eps=1e-20)).split(self.slices, dim=-1)
            pairs = zip(logits, self.alpha.unbind(), shifts, strict=True)
            logits = [torch.addcmul(logit, alpha, add.type_as(logit)) for logit, alpha, add in pairs]
        return self._weights(logits)

    def static_weights(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return these weights from b alone: [N], [N] and [N, N] or None."""
        return self._weights([*self.b.split(self.slices)])

    def _weights(self, logits: list[Tensor]) -> tuple[Tensor, Tensor, Tensor | None]:
        return logits[0].sigmoid(), 2 * logits[1].sigmoid(), self._mix(logits[2:])

    def _mix(self, logits: list[Tensor]) -> Tensor | None:
        if self.mixing == "none":
            return None
        n = self.slices[0]
        if self.mixing == "sinkhorn":
            return sinkhorn(logits[0].unflatten(-1, (n, n)), self.rounds)
        mix: Tensor = (logits[0].softmax(-1) @ self.permutation_matrices.flatten(-2)).unflatten(-1, (n, n))
        return mix


def mixing_at_start(mixing: Mixing, n: int) -> Tensor:
    """Return the initial biases of H_res, nearly the identity: [N * N], [N!], or [0] without mixing."""
    if mixing == "none":
        return torch.zeros(0)
    if mixing == "sinkhorn":
        return ((HOME - AWAY) * torch.eye(n) + AWAY).flatten()
    return torch.tensor([0.0] + [PERMUTATION_LOGIT] * (factorial(n) - 1))


def mixing_logits(mixing: Mixing, n: int) -> int:
    """Return the number of logits of H_res."""
    if mixing == "permutations":
        return factorial(n)
    return n * n if mixing == "sinkhorn" else 0


def all_permutations(n: int) -> Tensor:
    """Return all permutation matrices of n streams, the identity first: [N!, N, N]."""
    return torch.eye(n)[torch.tensor(list(permutations(range(n))))]


def sinkhorn(logits: Tensor, rounds: int) -> Tensor:
    """Apply Sinkhorn normalization to exp(logits), [..., N, N]: columns, then rows, in each round.

    At the end rows sum to 1, and columns nearly (R. Sinkhorn and P. Knopp, 1967). It works on logarithms, so nothing
    overflows.
    """
    shape = logits.shape
    # Positions are last and contiguous, so that sums over a few streams run along long vectors.
    logits = logits.reshape(-1, *shape[-2:]).permute(1, 2, 0).contiguous()
    for _ in range(rounds):
        logits = logits - logits.logsumexp(dim=0, keepdim=True)
        logits = logits - logits.logsumexp(dim=1, keepdim=True)
    return logits.exp().permute(2, 0, 1).reshape(shape)


@final
class ManifoldHyperConnections(ParallelStreams):
    """Manifold-constrained hyper-connections (DeepSeek, 2025): streams mixed by doubly stochastic matrices.

    With X the streams: the layer reads H_pre X, and then X' = H_res X + H_post^T f(H_pre X). The output head reads
    mean(X).

    With x = vec(X) / rms(vec(X)): H_pre = sigmoid(b_pre + a_pre x phi_pre), H_post = 2 sigmoid(b_post + a_post x
    phi_post), and H_res = Sinkhorn(exp(b_res + a_res x phi_res)). The rows of H_res sum to 1 and its columns nearly, so
    that mixing neither amplifies nor damps a stream. With `mixing=permutations` (mHC-lite, arXiv 2601.05732), H_res =
    sum_p softmax(b_res + a_res x phi_res)_p P_p over the n! permutation matrices P_p; its rows and columns sum to 1. X
    starts as n copies of the network's input. The state is X, [..., N, D]; between `read` and `write` it is (X mixed,
    H_post).

    Source: DeepSeek, mHC: Manifold-Constrained Hyper-Connections (arXiv 2512.24880, 2025). Differences and choices:

    * The first version states a = 0.01 and no other initial value. The others are as quoted from a later version: phi =
      0, b_post = 0, b_res = 6 I - 3, and b_pre = -3, except 3 at stream t mod n, the home of layer t. If phi and b were
      equal for all streams, the streams would never differ.
    * The paper does not state the end. Hyper-connections sum the streams; DeepSeek-V4 has a learned head. Here it is
      the mean, a multiple of the sum, and a norm removes the factor.
    * At initialization each layer reads the residual stream (n = 2), or 1.1 times it (n = 4). The norm before the layer
      removes this factor, so there it starts as the residual network up to the norm's epsilon. With two streams it does
      so everywhere.
    * The first layer has no H_res, which would mix equal copies. The mean sees the last layer's H_res only through its
      columns, so it hardly learns.
    * b and a are not weight-decayed, phi is: as in hyper-connections.
    * `mixing=none` is the identity for H_res, `dynamic=false` has no phi.
    * For mHC-lite, b_res is 0 for the identity and -8 for all other permutations, as in some public ports. Each of four
      streams then keeps 0.99 of itself, each of six 0.8. In these ports H_post starts unequal for the streams, here
      equal.
    * Sinkhorn normalization is not counted, like norms: each round adds and divides n^2 numbers twice.

    Parameters: `sum(
        (n := 2 * streams + {"sinkhorn": streams**2, "permutations": factorial(streams), "none": 0}[mixing] * (t > 0))
        + (n * streams * width + 2 + (mixing != "none" and t > 0)) * dynamic
        for t in range(layers)
    )`
    """

    Options: ClassVar[type] = ManifoldOptions
    axes: ClassVar[Axes] = {"streams": (2, 4), "mixing": ("sinkhorn", "permutations"), "dynamic": (True, False)}
    in_joint_spaces: ClassVar[bool] = False

    def __init__(self, spec: StackSpec, options: ManifoldOptions) -> None:
        super().__init__()
        self.streams = options.streams
        self.connections = nn.ModuleList(ManifoldConnection(t, spec.width, options) for t in range(len(spec.sites)))

    @classmethod
    def equals_resnet(cls, options: ManifoldOptions) -> bool:
        """Return whether the initial read weights of each layer sum to 1; otherwise equality needs norms."""
        return options.streams == 2

    @classmethod
    def equals_resnet_with_norms(cls, options: ManifoldOptions) -> bool:
        """Return True: at initialization a layer reads a multiple of the residual stream."""
        return True

    @classmethod
    def count(cls, spec: StackSpec, options: ManifoldOptions) -> Count:
        """Count b, a and phi; the products x phi, H_pre X, H_res X, and of weights and permutations.

        Elementwise: b + a x phi, + H_post f, and the mean.
        """
        n, width = options.streams, spec.width
        total_count = Count(elementwise=n * width)
        for t in range(len(spec.sites)):
            mixing = options.mixing if t else "none"
            logits, has_mixing = mixing_logits(mixing, n), mixing != "none"
            weights = 2 * n + logits
            total_count += Count(weights, n * (1 + n * has_mixing) * width, 2 * n * width)
            total_count += Count(macs=logits * n * n * (mixing == "permutations"))
            if options.dynamic:
                total_count += linear(n * width, weights, bias=False) + Count(
                    params=2 + has_mixing, elementwise=2 * weights
                )
        return total_count

    def coefficients(self) -> dict[str, Tensor]:
        """Return H_pre, H_post and H_res of each layer, without input-dependent terms; the first has no H_res."""
        alone = [connection.static_weights() for connection in self.connections]  # type: ignore[operator]  # of a ManifoldConnection
        read, write, mix = zip(*alone, strict=True)
        tables = {"H_pre": torch.stack(read), "H_post": torch.stack(write)}
        if all(matrix is None for matrix in mix):
            return tables
        none = read[0].new_full((self.streams, self.streams), torch.nan)
        return {**tables, "H_res": torch.stack([none if matrix is None else matrix for matrix in mix])}

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Any]:
        """Return the layer's input; the state holds the mixed streams and the weights of the output."""
        read, write, mix = self.connections[t](state)
        x = (read.unsqueeze(-2) @ state).squeeze(-2)
        return (x,), (state if mix is None else mix @ state, write)

    def write(self, t: int, state: Any, y: Tensor) -> Tensor:
        streams, weights = state
        return torch.addcmul(streams, weights.unsqueeze(-1), y.unsqueeze(-2))
