"""Multi-head attention whose queries, keys and values may come from different places.

Shapes: B = batch, N = tokens, D = width, H = heads, K = head dim; H * K need not be D.
"""

import math
from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.layers.norm import Norm
from search_spaces.support.count import Count, linear
from search_spaces.support.fused_linear import FusedLinear
from search_spaces.topologies.base import PRENORMED, InputMode, Site


class SoftmaxAttention(nn.Module):
    """softmax(q k^T / (temperature sqrt(K))) v, exact (Vaswani et al., 2017, equation 1, where temperature is 1).

    Whatever the inputs' precision, all of torch's kernels form the logits, scale them and normalise them in fp32.
    """

    def __init__(self, *, causal: bool, temperature: float = 1.0) -> None:
        super().__init__()
        self.causal = causal
        self.temperature = temperature

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend: three [B, H, N, K] to one. Keys that the mask [B, N] is False for are padding, and not seen."""
        scale = 1 / (self.temperature * math.sqrt(q.shape[-1]))
        if mask is None:
            return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=scale)
        visible = mask[:, None, None, :]  # [B, 1, 1, N]
        if self.causal:  # torch takes either a mask or is_causal
            visible = visible & visible.new_ones(q.shape[-2], k.shape[-2]).tril()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale)


def count_softmax(heads: int, head_dim: int, tokens: int) -> Count:
    """Closed form of SoftmaxAttention, scores and values in full: neither a mask nor causality halves anything."""
    return Count(macs=2 * tokens * tokens * heads * head_dim)


class SharedProjection(nn.Module):
    """Norm once and project once: one input [B, N, D] to queries, keys and values [B, N, H*K], or to the first two."""

    def __init__(self, width: int, inner: int, norm: Norm | None, bias: bool, values: bool) -> None:
        super().__init__()
        self.parts = 3 if values else 2
        self.norm = nn.Identity() if norm is None else norm.build(width)
        self.qkv = FusedLinear(width, self.parts * inner, bias=bias, carrying=slice(2 * inner, None))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Project [B, N, D]; None for values that come from elsewhere."""
        q, k, *v = self.qkv(self.norm(x)).chunk(self.parts, dim=-1)
        return q, k, v[0] if v else None


class PortProjection(nn.Module):
    """Norm and project each input by itself: three [B, N, D] to three [B, N, H*K]."""

    def __init__(self, width: int, inner: int, norm: Norm | None, bias: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.Identity() if norm is None else norm.build(width) for _ in range(3))
        self.projections = nn.ModuleList(nn.Linear(width, inner, bias=bias) for _ in range(3))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Project three [B, N, D]."""
        return tuple(project(norm(x)) for project, norm, x in zip(self.projections, self.norms, inputs, strict=True))


def split_ports(shared: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A SharedProjection's weights as those of the PortProjection that computes the same from three equal inputs."""
    split = {}
    for name, tensor in shared.items():
        module, kind = name.split(".")
        for port, part in enumerate(tensor.chunk(3) if module == "qkv" else (tensor,) * 3):
            split[f"{'projections' if module == 'qkv' else 'norms'}.{port}.{kind}"] = part
    return split


class NoProjection(nn.Module):
    """Inputs that come normed and in head space are taken as they are."""

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the three [B, N, H*K]."""
        return inputs


class Attention(nn.Module):
    """A pre-norm attention layer, the first layer of its block.

    What it does with its inputs follows from how the topology delivers them (see Topology.delivers). Without `values`
    it projects none: the topology gives them (see Topology.values). Without a norm it takes inputs as they are.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        head_dim: int,
        attend: nn.Module,
        norm: Norm | None,
        input_mode: InputMode,
        *,
        bias: bool,
        dropout: float = 0.0,
        values: bool = True,
    ) -> None:
        super().__init__()
        inner = heads * head_dim
        self.heads = heads
        self.site = Site(
            ("q", "k", "v"), inner, starts_block=True, norms_input=norm is not None and input_mode not in PRENORMED
        )
        self.attend = attend
        self.project: nn.Module
        match input_mode:
            case "shared" | "bare" | "normed":
                self.project = SharedProjection(width, inner, norm if input_mode == "shared" else None, bias, values)
            case "per-port":
                self.project = PortProjection(width, inner, norm, bias)
            case "heads":
                self.project = NoProjection()
        self.out = nn.Identity() if input_mode == "heads" else nn.Linear(inner, width, bias=bias)
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, *inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map one [B, N, D], or one for each of q, k and v, to [B, N, D]; in head space, [B, N, H*K] throughout.

        The mask [B, N] is False where a token is padding; what comes out there means nothing.
        """
        q, k, v = self.project(*inputs)
        return self.mix(q, k, v, mask)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """What comes after the projections: three [B, N, H*K] to [B, N, D]."""
        q, k, v = (x.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for x in (q, k, v))  # [B, H, N, K]
        y = self.attend(q, k, v, mask)
        return self.drop(self.out(y.transpose(-3, -2).flatten(-2)))  # type: ignore[no-any-return]  # nn.Module's Any


def count_attention(
    width: int, heads: int, head_dim: int, norm: Norm, input_mode: InputMode, *, bias: bool, values: bool = True
) -> Count:
    """Closed form of an Attention layer at one position, without what attends in it."""
    if input_mode == "heads":
        return Count()
    inner = heads * head_dim
    norms = Count(params=norm.params(width) * {"shared": 1, "per-port": 3, "bare": 0, "normed": 0}[input_mode])
    return norms + linear(width, (3 if values else 2) * inner, bias=bias) + linear(inner, width, bias=bias)
