"""Nyström attention: softmax attention through a few landmarks, in time and memory linear in tokens.

Shapes: B = batch, H = heads, N = tokens, P = N padded to a multiple of M, K = head dim, M = landmarks.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.layers.attention import SoftmaxAttention, count_softmax
from search_spaces.support.count import Count
from search_spaces.support.errors import UserError, check_at_least

Scaling = Literal["matrix", "batch"]
STEPS = 6
"""Of the iteration for the pseudo-inverse, as published."""


@dataclass(frozen=True, slots=True)
class Nystrom:
    """Which Nyström attention a network has.

    Attributes:
        landmarks: How many positions stand for all, at most.
        kernel: Taps of a convolution over the values of each head, added to the output; odd. None has none.
        scaling: What the iteration for the pseudo-inverse starts from: each matrix over its own largest column sum
            ("matrix"), or over the largest of all heads and examples in the batch ("batch", as first published),
            where an example's output depends on its batch.

    Raises:
        UserError: No landmarks, or a kernel that has no middle.
    """

    landmarks: int
    kernel: int | None = None
    scaling: Scaling = "matrix"

    def __post_init__(self) -> None:
        check_at_least("landmarks", self.landmarks, 1)
        if self.kernel is not None and self.kernel % 2 != 1:
            message = f"kernel must be odd, got {self.kernel}."
            raise UserError("out-of-range", message, option="kernel", value=self.kernel)

    def build(self, heads: int) -> "NystromAttention":
        """The module for so many heads."""
        return NystromAttention(heads, self)

    def count(self, heads: int, head_dim: int, tokens: int) -> Count:
        """Its closed form: products with the padded tokens, and `kernel` MACs for each value of the convolution."""
        skip = Count(heads * self.kernel, self.kernel * tokens * heads * head_dim) if self.kernel else Count()
        if tokens <= self.landmarks:
            return count_softmax(heads, head_dim, tokens) + skip
        m, length = self.landmarks, tokens + self.padding(tokens)
        far = 4 * length * m * head_dim  # queries to landmarks and landmarks to keys: scores and values of both
        near = 2 * m * m * head_dim  # landmarks to landmarks, and the pseudo-inverse applied
        return skip + Count(macs=heads * (far + near + 4 * STEPS * m**3))

    def padding(self, tokens: int) -> int:
        """Masked positions put behind so many tokens, so that the landmarks' segments are of one length."""
        return 0 if tokens <= self.landmarks else -tokens % self.landmarks


class NystromAttention(nn.Module):
    """softmax(Q K~') pinv(softmax(Q~ K~')) softmax(Q~ K') V, with landmarks Q~ and K~ the means of segments.

    Queries and keys are divided by K^(1/4) each; padding counts as zeros in the means, and is not seen as a key. The
    pseudo-inverse is Z_6 of

        Z_{j+1} = Z_j (13 I - A Z_j (15 I - A Z_j (7 I - A Z_j))) / 4,    Z_0 = A' / (|A|_1 |A|_inf).

    All of it is in fp32 at least, autocast or not. Sequences of no more tokens than landmarks have exact attention.
    Where landmarks do not divide the tokens, masked positions are put behind them up to the next multiple.

    The optional skip is the convolution of each head's masked values with `kernel` taps of that head.

    Source: Xiong et al., Nyströmformer (2021), section 3, and its code for the Long Range Arena, which pads
    to a power of two: the same where the landmarks are one as well.
    """

    def __init__(self, heads: int, options: Nystrom) -> None:
        super().__init__()
        self.options = options
        self.exact = SoftmaxAttention(causal=False)
        self.taps: nn.Parameter | None = None
        if options.kernel is not None:
            self.taps = nn.Parameter(torch.empty(heads, options.kernel))
            nn.init.uniform_(self.taps, -(options.kernel**-0.5), options.kernel**-0.5)  # as torch's convolutions

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend: three [B, H, N, K] to one, past the padding that a mask [B, N] is False for."""
        precise = torch.promote_types(q.dtype, torch.float32)
        with torch.autocast("cuda" if q.is_cuda else "cpu", enabled=False):
            q, k, values = q.to(precise), k.to(precise), v.to(precise)
            if mask is not None:
                q, k, values = (x * mask[:, None, :, None] for x in (q, k, values))
            y = self._attend(q, k, values, mask)
            if self.taps is not None:
                y = y + _convolve(values, self.taps.to(precise))
        return y.type_as(v)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        landmarks, tokens = self.options.landmarks, q.shape[-2]
        if tokens <= landmarks:
            return self.exact(q, k, v, mask)  # type: ignore[no-any-return]  # nn.Module returns Any
        padding = self.options.padding(tokens)
        if padding:
            mask = q.new_ones(q.shape[0], tokens, dtype=torch.bool) if mask is None else mask
            mask = F.pad(mask, (0, padding))
            q, k, v = (F.pad(x, (0, 0, 0, padding)) for x in (q, k, v))  # [B, H, P, K]
        q_means, k_means = (x.unflatten(-2, (landmarks, -1)).mean(-2) for x in (q, k))  # [B, H, M, K]
        near = torch.softmax(q_means @ k_means.mT / math.sqrt(q.shape[-1]), dim=-1)  # [B, H, M, M]
        # Both long products are attention themselves: torch's kernels never write their scores out.
        landmark_values = self.exact(q_means, k, v, mask)  # [B, H, M, K]
        spread = self.exact(q, k_means, pseudo_inverse(near, self.options.scaling) @ landmark_values)  # [B, H, P, K]
        return spread[..., :tokens, :]  # type: ignore[no-any-return]  # nn.Module returns Any


def pseudo_inverse(a: Tensor, scaling: Scaling) -> Tensor:
    """Six steps towards the pseudo-inverse of [B, H, M, M] whose rows sum to 1; for the scaling see Nystrom."""
    largest = a.sum(-2).amax(-1)  # [B, H]; the largest row sum is 1
    z = a.mT / (largest.max() if scaling == "batch" else largest[..., None, None])
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    for _ in range(STEPS):
        az = a @ z
        z = z @ (13 * identity - az @ (15 * identity - az @ (7 * identity - az))) / 4
    return z


def _convolve(v: Tensor, taps: Tensor) -> Tensor:
    """Convolve along the tokens of [B, H, N, K], each head with its own of the taps [H, kernel].

    As a depthwise convolution of H*K channels, channels last, which is how the values lie in memory: on a CPU many
    times faster than one of H channels with kernel (taps, 1), and counted the same.
    """
    heads, head_dim = v.shape[1], v.shape[3]
    x = v.transpose(1, 2).flatten(2).mT[..., None]  # [B, H*K, N, 1]
    kernel = taps[:, None].expand(-1, head_dim, -1).flatten(0, 1)[:, None, :, None]  # [H*K, 1, kernel, 1]
    y = F.conv2d(x, kernel, padding=(taps.shape[1] // 2, 0), groups=heads * head_dim)
    output: Tensor = y[..., 0].mT.unflatten(2, (heads, head_dim)).transpose(1, 2)  # [B, H, N, K]
    return output
