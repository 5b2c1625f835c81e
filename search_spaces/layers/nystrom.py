"""Nyström attention: softmax attention through landmarks, linear in tokens in time and memory.

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
"""Steps of the pseudo-inverse's iteration, as published."""


@dataclass(frozen=True, slots=True)
class Nystrom:
    """Options of Nyström attention.

    Attributes:
        landmarks: Maximum number of landmarks.
        kernel: Taps of a convolution over each head's values, added to the output; odd. None for no convolution.
        scaling: Initial scale of the pseudo-inverse's iteration. "matrix" divides each matrix by its own largest column
            sum. "batch" divides by the largest over all heads and examples, as first published; an example's output
            then depends on its batch.

    Raises:
        UserError: No landmarks, or an even kernel.
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
        """Build the module for this many heads."""
        return NystromAttention(heads, self)

    def count(self, heads: int, head_dim: int, tokens: int) -> Count:
        """Count in closed form: products with padded tokens, and `kernel` MACs per value of the convolution."""
        skip = Count(heads * self.kernel, self.kernel * tokens * heads * head_dim) if self.kernel else Count()
        if tokens <= self.landmarks:
            return count_softmax(heads, head_dim, tokens) + skip
        m, length = self.landmarks, tokens + self.padding(tokens)
        far = 4 * length * m * head_dim  # queries to landmarks and landmarks to keys: scores and values of both
        near = 2 * m * m * head_dim  # landmarks to landmarks, and the application of the pseudo-inverse
        return skip + Count(macs=heads * (far + near + 4 * STEPS * m**3))

    def padding(self, tokens: int) -> int:
        """Return the number of masked positions that pad the tokens to a multiple of the landmarks."""
        return 0 if tokens <= self.landmarks else -tokens % self.landmarks


class NystromAttention(nn.Module):
    """Attention softmax(Q K~') pinv(softmax(Q~ K~')) softmax(Q~ K') V; landmarks Q~ and K~ are means of segments.

    Queries and keys are divided by K^(1/4) each. Padding counts as zeros in the means and is no key. The pseudo-inverse
    is Z_6 of

        Z_{j+1} = Z_j (13 I - A Z_j (15 I - A Z_j (7 I - A Z_j))) / 4,    Z_0 = A' / (|A|_1 |A|_inf).

    All of it is computed at least in fp32, also under autocast. If there are no more tokens than landmarks, attention
    is exact. If landmarks do not divide the tokens, masked positions pad them to the next multiple.

    The optional convolution applies `kernel` taps per head to its masked values, and is added to the output.

    Source: Xiong et al., Nyströmformer (2021), section 3, and its code for the Long Range Arena. The code pads to a
    power of two, which is the same if the landmarks are a power of two.
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
        """Attend: three [B, H, N, K] to one. Keys where the mask [B, N] is False are padding and ignored."""
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
        # Both long products are attention too: torch's kernels never store their scores.
        landmark_values = self.exact(q_means, k, v, mask)  # [B, H, M, K]
        spread = self.exact(q, k_means, pseudo_inverse(near, self.options.scaling) @ landmark_values)  # [B, H, P, K]
        return spread[..., :tokens, :]  # type: ignore[no-any-return]  # nn.Module returns Any


def pseudo_inverse(a: Tensor, scaling: Scaling) -> Tensor:
    """Run STEPS iterations towards the pseudo-inverse of [B, H, M, M] with row sums 1; see Nystrom for `scaling`."""
    largest = a.sum(-2).amax(-1)  # [B, H]; the largest row sum is 1
    z = a.mT / (largest.max() if scaling == "batch" else largest[..., None, None])
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    for _ in range(STEPS):
        az = a @ z
        z = z @ (13 * identity - az @ (15 * identity - az @ (7 * identity - az))) / 4
    return z


def _convolve(v: Tensor, taps: Tensor) -> Tensor:
    """Convolve [B, H, N, K] along the tokens, with taps [H, kernel] per head.

    It is a depthwise convolution of H*K channels in channels-last order, the values' memory layout. On a CPU it is many
    times faster than H channels with a kernel (taps, 1); the counted MACs are equal.
    """
    heads, head_dim = v.shape[1], v.shape[3]
    x = v.transpose(1, 2).flatten(2).mT[..., None]  # [B, H*K, N, 1]
    kernel = taps[:, None].expand(-1, head_dim, -1).flatten(0, 1)[:, None, :, None]  # [H*K, 1, kernel, 1]
    y = F.conv2d(x, kernel, padding=(taps.shape[1] // 2, 0), groups=heads * head_dim)
    output: Tensor = y[..., 0].mT.unflatten(2, (heads, head_dim)).transpose(1, 2)  # [B, H, N, K]
    return output
