"""The residual matrix transformer: the stream is an outer-product memory that layers read and write by key.

Shapes: ... = any leading axes, K = keys (length of a key), V = values (length of a value). R = rank of a layer, the
number of vectors that it reads and writes; R * V is its `features`. The residual matrix is stored as [..., V, K], so
that reads and writes are linear maps along the last axis.
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
from search_spaces.topologies.base import InputMode, StackSpec, Topology, sum_tensors


@dataclass(frozen=True, slots=True)
class RMTOptions:
    """The residual matrix.

    Attributes:
        keys: Length of a key, D_k in the paper.
        values: Length of a value, D_v in the paper; by default the head dim, and no other where there are heads.
        norm: Norm of the matrix before it is read: "layer" as in the paper, "rms" as in the official code.
        initial: Initialization of keys: "xavier", or "lecun" as in the paper's comparison of variants (C.4).
    """

    keys: int = 32
    values: int | None = None
    norm: Literal["layer", "rms"] = "layer"
    initial: Literal["xavier", "lecun"] = "xavier"

    def __post_init__(self) -> None:
        for name, number in (("keys", self.keys), ("values", self.values)):
            check_at_least(name, number, 1)


class Load(nn.Module):
    """Reads of R vectors per port: x^(h) = r^(h) X, as one linear map for all ports."""

    def __init__(self, ports: int, rank: int, keys: int) -> None:
        super().__init__()
        self.ports = ports
        self.keys = nn.Linear(keys, ports * rank, bias=False)
        nn.init.xavier_normal_(self.keys.weight)

    def forward(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """Map [..., V, K] to one [..., R*V] per port."""
        vectors = self.keys(matrix).mT  # [..., ports * R, V]
        return torch.chunk(vectors.flatten(-2), self.ports, dim=-1)


class MatrixStore(nn.Module):
    """A write of R vectors: X = sum_h w^(h) (outer) x^(h)."""

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
    """A norm over all entries of a matrix, with a gain per entry and no bias; epsilon 1e-6."""

    def __init__(self, keys: int, values: int, kind: Literal["layer", "rms"]) -> None:
        super().__init__()
        size = keys * values
        # One long axis instead of two gives the same norm, and a gain vector, which is not weight-decayed.
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
        the output head reads r_U^(h) LN(X)                                               (17, 27)

    The keys replace the attention layer's four projections. R is the number of heads in an attention layer and width /
    values elsewhere. With heads * head_dim = width, as in the paper, both are equal. Each embedding (tokens, positions)
    has its own keys.

    Source: Mak and Flanigan, Residual Matrix Transformers (2025); the numbers above are its equations. Differences and
    choices:

    * Equation 25 ends one before h = R; here all R vectors are read.
    * Keys are Xavier-normal, as the paper's analysis of variance assumes. Its 1.14 for attention's loads (table 2)
      follows from fan-out 3R, so the three ports are one map. The keys of layers' writes are multiplied by 1 /
      sqrt(layers) at the same place as in the official code; those of embeddings are not. C.1 calls it "inverse layer
      scaling on layer outputs from GPT2". The official code draws from N(0, 0.02^2 / fan-in) and leaves the scale to
      muP.
    * `initial=lecun` draws keys from N(0, 1 / fan-in). C.4 says "all parameters", so nothing is scaled by depth.
    * `norm=layer` is the paper's, `norm=rms` the official code's. Both have a gain per entry, which the paper's
      parameter count leaves out, and no bias.
    * Keys are weight-decayed: C.1 exempts only norms, embedding and unembedding.
    * Under bf16 autocast X is bf16, as in the official code. Hyper-connections (mHC, frac) too mix their streams by a
      bf16 product; other topologies' sums stay in float32.

    The state is X, [..., V, K].

    Parameters: `keys * (
        (num_embeddings + 1) * width // (values or head_dim)
        + sum((len(site.ports) + 1) * site.features // (values or head_dim) for site in sites)
        + (layers + 1) * (values or head_dim)
    )`

    Raises:
        UserError: The values do not fit the width or the head dim.
    """

    Options: ClassVar[type] = RMTOptions
    axes: ClassVar[Axes] = {"keys": (16, 32)}
    input_mode: InputMode = "heads"

    def __init__(self, spec: StackSpec, options: RMTOptions) -> None:
        super().__init__()
        reason = _incompatibility_reason(spec.width, spec.head_dim, options)
        if reason is not None:
            sizes = {"value": options.values, "width": spec.width, "head_dim": spec.head_dim}
            raise UserError("mismatch", reason, option="values", **sizes)
        keys, values = options.keys, options.values or spec.head_dim
        rank, layers = spec.width // values, len(spec.sites)
        self.embed = nn.ModuleList(MatrixStore(rank, keys) for _ in range(spec.num_embeddings))
        self.loads = nn.ModuleList(Load(len(site.ports), site.features // values, keys) for site in spec.sites)
        self.stores = nn.ModuleList(
            MatrixStore(site.features // values, keys, 1 / math.sqrt(layers)) for site in spec.sites
        )
        self.unembed = Load(1, rank, keys)
        self.norms = nn.ModuleList(MatrixNorm(keys, values, options.norm) for _ in range(layers + 1))
        if options.initial == "lecun":
            init_lecun(self.modules())

    @classmethod
    def incompatibility_reason(cls, architecture: Architecture, options: RMTOptions) -> str | None:
        """Refuse widths that are no multiple of the values, and values that are not the head dim."""
        return _incompatibility_reason(architecture.width, architecture.head_dim, options)

    @classmethod
    def count(cls, spec: StackSpec, options: RMTOptions) -> Count:
        """Count a key matrix per embedding, port, layer output and for the output head; and a gain per norm.

        Reads and writes are matrix work. Only the addition of each layer's matrix to X is elementwise.
        """
        keys, values = options.keys, options.values or spec.head_dim
        maps = [spec.width] * (spec.num_embeddings + 1)
        maps += [site.features for site in spec.sites for _ in (*site.ports, "output")]
        loads_and_stores = sum(
            (linear(size // values, keys, bias=False).at_positions(values) for size in maps), Count()
        )
        layers = len(spec.sites)
        return loads_and_stores + Count(params=(layers + 1) * keys * values, elementwise=layers * keys * values)

    def open(self, *embeddings: Tensor) -> Tensor:
        return sum_tensors(tuple(store(part) for store, part in zip(self.embed, embeddings, strict=True)))

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        inputs: tuple[Tensor, ...] = self.loads[t](self.norms[t](state))
        return inputs, state

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return state + self.stores[t](y)  # type: ignore[no-any-return]  # nn.Module returns Any

    def close(self, state: Tensor) -> Tensor:
        x: Tensor
        (x,) = self.unembed(self.norms[-1](state))
        return x


def _incompatibility_reason(width: int, head_dim: int, options: RMTOptions) -> str | None:
    values = options.values or head_dim
    if not values:
        return "rmt needs the length of its values in a network without heads. Set it, as in rmt(values=16)."
    if head_dim and values != head_dim:
        return f"rmt's values must equal head_dim, got values={values} and head_dim={head_dim}."
    if width % values:
        return f"rmt's values must divide the width, got values={values} and width={width}."
    return None
