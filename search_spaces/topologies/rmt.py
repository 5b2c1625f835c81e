"""The residual matrix transformer: the stream is an outer-product memory that layers load from and store to by key.

Shapes: ... = any leading axes, K = keys (length of a key), V = values (length of a value), R = rank of a layer, the
vectors it reads and writes: R * V is its `inner`. The residual matrix is kept as [..., V, K], keys last, so that loads
and stores are plain linear maps along its last axis.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count, linear
from search_spaces.support.errors import UserError, check_at_least
from search_spaces.support.lecun_init import init_lecun
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import InputMode, Topology, Wiring, sum_tensors


@dataclass(frozen=True, slots=True)
class RMTOptions:
    """The residual matrix.

    Attributes:
        keys: Length of a key, D_k of the paper.
        values: Length of a value, D_v of the paper; without it the head dim, which it must be where there are heads.
        norm: The matrix is normed before it is read: "layer" as in the paper, "rms" as in the official code.
        initial: How keys are drawn: "xavier", or "lecun" as in the paper's comparison of variants (C.4).
    """

    keys: int = 32
    values: int | None = None
    norm: Literal["layer", "rms"] = "layer"
    initial: Literal["xavier", "lecun"] = "xavier"

    def __post_init__(self) -> None:
        for name, number in (("keys", self.keys), ("values", self.values)):
            check_at_least(name, number, 1)


class Load(nn.Module):
    """Read R vectors for each of several ports: x^(h) = r^(h) X, one linear map for all of them."""

    def __init__(self, ports: int, rank: int, keys: int) -> None:
        super().__init__()
        self.ports = ports
        self.keys = nn.Linear(keys, ports * rank, bias=False)
        nn.init.xavier_normal_(self.keys.weight)

    def forward(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """Map [..., V, K] to one [..., R*V] for each port."""
        vectors = self.keys(matrix).mT  # [..., ports * R, V]
        return torch.chunk(vectors.flatten(-2), self.ports, dim=-1)


class MatrixStore(nn.Module):
    """Write R vectors: X = sum_h w^(h) (outer) x^(h)."""

    def __init__(self, rank: int, keys: int, gain: float = 1.0) -> None:
        super().__init__()
        self.rank = rank
        self.keys = nn.Linear(rank, keys, bias=False)
        nn.init.xavier_normal_(self.keys.weight, gain)

    def forward(self, y: Tensor) -> Tensor:
        """Map [..., R*V] to [..., V, K]."""
        vectors = torch.unflatten(y, -1, (self.rank, -1))  # [..., R, V]
        return self.keys(vectors.mT)  # type: ignore[no-any-return]  # nn.Module returns Any


class MatrixNorm(nn.Module):
    """Norm a matrix over all its entries at once, with a gain for each entry and no bias; epsilon 1e-6."""

    def __init__(self, keys: int, values: int, kind: Literal["layer", "rms"]) -> None:
        super().__init__()
        size = keys * values
        # One long axis instead of two: the same sum, and a gain that is a vector, which weight decay leaves alone.
        self.norm = nn.LayerNorm(size, 1e-6, bias=False) if kind == "layer" else nn.RMSNorm(size, 1e-6)

    def forward(self, matrix: Tensor) -> Tensor:
        """Map [..., V, K] to the same shape."""
        return self.norm(matrix.flatten(-2)).view_as(matrix)  # type: ignore[no-any-return]  # nn.Module returns Any


@final
class RMT(Topology):
    """Residual matrix transformer (Mak and Flanigan, 2025): the stream is a matrix, read and written by key.

    A residual matrix X for each position; every layer reads R vectors of LN(X) by key and adds R outer products.

        X_0 = sum over the embeddings of sum_h w_E^(h) (outer) e^(h)          (14, 18, 19)
        q^(h) = r_Q^(h) LN(X), likewise k and v;  X += sum_h w_O^(h) (outer) head^(h)           (15, 20, 22)
        x^(h) = r_FF^(h) LN(X);  X += sum_h w_FF^(h) (outer) ffn(x)^(h)           (16, 23, 25)
        the head reads r_U^(h) LN(X)                                               (17, 27)

    The keys stand in place of the attention layer's four projections. R is the number of heads at an attention layer
    and width / values elsewhere; with heads * head_dim = width, as in the paper, they are the same. Each embedding
    (tokens, positions) has keys of its own.

    Source: Mak and Flanigan, Residual Matrix Transformers (2025); numbers above are its equations. Readings taken:

    * Equation 25 stops short of h = R by one; all R vectors are read.
    * Keys start Xavier-normal, which the paper's analysis of variance assumes (table 2: 1.14 for attention's loads is
      fan-out 3R, so the three ports are one map). Those by which layers store are multiplied by 1 / sqrt(layers), the
      "inverse layer scaling on layer outputs from GPT2" of C.1, at the place where the official code has it; embeddings
      are stored without. The official code draws from N(0, 0.02^2 / fan-in) and leaves the scale to muP.
    * `initial=lecun` draws keys from N(0, 1 / fan-in), of which C.4 says "all parameters": nothing is scaled by depth.
    * `norm=layer` is the paper's, `norm=rms` the official code's. Both have a gain for each entry, which the paper's
      parameter count leaves out, and no bias.
    * Keys are weight-decayed: C.1 exempts norms, embedding and unembedding only.
    * Under bf16 autocast X is kept in bf16, as in the official code. Of others hyper-connections (mHC, frac) mix their
      streams by a product, which is bf16 there; sums stay in float32.

    The state is X, [..., V, K].

    Parameters: `keys * (
        (parts + 1) * width // (values or head_dim)
        + sum((len(site.ports) + 1) * site.inner // (values or head_dim) for site in sites)
        + (layers + 1) * (values or head_dim)
    )`

    Raises:
        UserError: What `refusal` says.
    """

    Options: ClassVar[type] = RMTOptions
    axes: ClassVar[Axes] = {"keys": (16, 32)}
    input_mode: InputMode = "heads"

    def __init__(self, wiring: Wiring, options: RMTOptions) -> None:
        super().__init__()
        reason = _refusal(wiring.width, wiring.head_dim, options)
        if reason is not None:
            sizes = {"value": options.values, "width": wiring.width, "head_dim": wiring.head_dim}
            raise UserError("mismatch", reason, option="values", **sizes)
        keys, values = options.keys, options.values or wiring.head_dim
        rank, layers = wiring.width // values, len(wiring.sites)
        self.embed = nn.ModuleList(MatrixStore(rank, keys) for _ in range(wiring.parts))
        self.loads = nn.ModuleList(Load(len(site.ports), site.inner // values, keys) for site in wiring.sites)
        self.stores = nn.ModuleList(
            MatrixStore(site.inner // values, keys, 1 / math.sqrt(layers)) for site in wiring.sites
        )
        self.unembed = Load(1, rank, keys)
        self.norms = nn.ModuleList(MatrixNorm(keys, values, options.norm) for _ in range(layers + 1))
        if options.initial == "lecun":
            init_lecun(self.modules())

    @classmethod
    def refusal(cls, architecture: Architecture, options: RMTOptions) -> str | None:
        """Widths that are no multiple of the values, and values that are not the head dim."""
        return _refusal(architecture.width, architecture.head_dim, options)

    @classmethod
    def count(cls, wiring: Wiring, options: RMTOptions) -> Count:
        """A key matrix for each embedding, each port, each layer's output and the head; a gain for each norm.

        Loads and stores are matrix work; what is elementwise is to add each layer's matrix to X.
        """
        keys, values = options.keys, options.values or wiring.head_dim
        maps = [wiring.width] * (wiring.parts + 1)
        maps += [site.inner for site in wiring.sites for _ in (*site.ports, "output")]
        loads_and_stores = sum((linear(size // values, keys, bias=False).times(values) for size in maps), Count())
        layers = len(wiring.sites)
        return loads_and_stores + Count(params=(layers + 1) * keys * values, elementwise=layers * keys * values)

    def open(self, *parts: Tensor) -> Tensor:
        """Store each embedding by its own keys."""
        return sum_tensors(tuple(store(part) for store, part in zip(self.embed, parts, strict=True)))

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Load the vectors of each port from the normed matrix."""
        inputs: tuple[Tensor, ...] = self.loads[t](self.norms[t](state))
        return inputs, state

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        """Store the layer's output vectors."""
        return state + self.stores[t](y)  # type: ignore[no-any-return]  # nn.Module returns Any

    def close(self, state: Tensor) -> Tensor:
        """Load what the head reads from the normed matrix, [..., D]."""
        x: Tensor
        (x,) = self.unembed(self.norms[-1](state))
        return x


def _refusal(width: int, head_dim: int, options: RMTOptions) -> str | None:
    values = options.values or head_dim
    if not values:
        return "rmt needs the length of its values in a network without heads. Give one, as in rmt(values=16)."
    if head_dim and values != head_dim:
        return f"rmt's values must be as long as a head, got values={values} and head_dim={head_dim}."
    if width % values:
        return f"rmt's values must divide the width, got values={values} and width={width}."
    return None
