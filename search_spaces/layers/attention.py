"""Multi-head attention with separate inputs for queries, keys and values.

Shapes: B = batch, N = tokens, D = width, H = heads, K = head dim; H * K need not be D.
"""

import math
from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.layers.norm import Norm
from search_spaces.support.count import Count, linear
from search_spaces.support.fused_linear import FusedLinear
from search_spaces.topologies.base import WITHOUT_LAYER_NORM, InputMode, Site


class SoftmaxAttention(nn.Module):
    """Exact attention softmax(q k^T / (temperature sqrt(K))) v (Vaswani et al., 2017, equation 1, with temperature 1).

    For inputs of any precision, all of torch's kernels compute, scale and normalize the logits in fp32.
    """

    def __init__(self, *, causal: bool, temperature: float = 1.0) -> None:
        super().__init__()
        self.causal = causal
        self.temperature = temperature

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend: three [B, H, N, K] to one. Keys where the mask [B, N] is False are padding and ignored."""
        scale = 1 / (self.temperature * math.sqrt(q.shape[-1]))
        if mask is None:
            return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=scale)
        visible = mask[:, None, None, :]  # [B, 1, 1, N]
        if self.causal:  # torch takes either a mask or is_causal
            visible = visible & visible.new_ones(q.shape[-2], k.shape[-2]).tril()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale)


def count_softmax(heads: int, head_dim: int, tokens: int) -> Count:
    """Count SoftmaxAttention in closed form; scores and values count in full, despite masks or causality."""
    return Count(macs=2 * tokens * tokens * heads * head_dim)


class SharedProjection(nn.Module):
    """One norm and one fused projection: [B, N, D] to queries, keys and, if `values`, values [B, N, H*K]."""

    def __init__(self, width: int, inner: int, norm: Norm | None, bias: bool, values: bool) -> None:
        super().__init__()
        self.parts = 3 if values else 2
        self.norm = nn.Identity() if norm is None else norm.build(width)
        self.qkv = FusedLinear(width, self.parts * inner, bias=bias, output_rows=slice(2 * inner, None))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Project [B, N, D]; the values are None if there is no projection for them."""
        q, k, *v = self.qkv(self.norm(x)).chunk(self.parts, dim=-1)
        return q, k, v[0] if v else None


class PortProjection(nn.Module):
    """A norm and a projection per input: three [B, N, D] to three [B, N, H*K]."""

    def __init__(self, width: int, inner: int, norm: Norm | None, bias: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.Identity() if norm is None else norm.build(width) for _ in range(3))
        self.projections = nn.ModuleList(nn.Linear(width, inner, bias=bias) for _ in range(3))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Project three [B, N, D]."""
        return tuple(project(norm(x)) for project, norm, x in zip(self.projections, self.norms, inputs, strict=True))


def split_ports(shared: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert SharedProjection weights to those of a PortProjection that gives equal outputs for three equal inputs."""
    split = {}
    for name, tensor in shared.items():
        module, kind = name.split(".")
        for port, part in enumerate(tensor.chunk(3) if module == "qkv" else (tensor,) * 3):
            split[f"{'projections' if module == 'qkv' else 'norms'}.{port}.{kind}"] = part
    return split


class NoProjection(nn.Module):
    """No projection, for inputs that are normed and in head space."""

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the three [B, N, H*K] unchanged."""
        return inputs


class Attention(nn.Module):
    """A pre-norm attention layer, the first layer of its block.

    `input_mode` determines what it does with its inputs (see Topology.input_mode). With `values=False` it does not
    project values; the topology provides them (see Topology.values). With `norm=None` it does not norm its inputs.
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
            ("q", "k", "v"),
            inner,
            starts_block=True,
            norms_input=norm is not None and input_mode not in WITHOUT_LAYER_NORM,
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
        """Map one [B, N, D], or one each for q, k and v, to [B, N, D]; in head space all are [B, N, H*K].

        The mask [B, N] is False for padding, where the output is undefined.
        """
        q, k, v = self.project(*inputs)
        return self.mix(q, k, v, mask)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend and project the output: three [B, N, H*K] to [B, N, D]."""
        q, k, v = (x.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for x in (q, k, v))  # [B, H, N, K]
        y = self.attend(q, k, v, mask)
        return self.drop(self.out(y.transpose(-3, -2).flatten(-2)))  # type: ignore[no-any-return]  # nn.Module's Any


def count_attention(
    width: int, heads: int, head_dim: int, norm: Norm, input_mode: InputMode, *, bias: bool, values: bool = True
) -> Count:
    """Count an Attention layer at one position in closed form, without its `attend` module."""
    if input_mode == "heads":
        return Count()
    inner = heads * head_dim
    norms = Count(params=norm.params(width) * {"shared": 1, "per-port": 3, "bare": 0, "normed": 0}[input_mode])
    return norms + linear(width, (3 if values else 2) * inner, bias=bias) + linear(inner, width, bias=bias)
