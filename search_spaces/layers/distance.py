"""Attention with a bias that grows with distance (ALiBi), instead of positions.

Shapes: B = batch, H = heads, N = tokens, C = context (maximum number of tokens), K = head dim.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class DistanceBias(nn.Module):
    """The penalty of each logit: slope times distance (Press et al., "Train Short, Test Long", ALiBi, 2022).

    Slopes fall geometrically from 2^(-8/H) to 2^-8 for any H; a single head has 2^-8. If H is no power of two, the
    paper interleaves two such sequences; this follows the official code of residual matrix transformers.
    """

    penalty: Tensor

    def __init__(self, heads: int, context: int) -> None:
        super().__init__()
        exponents = -8 * torch.arange(1, heads + 1).double() / heads
        position = torch.arange(context)
        distance = (position[:, None] - position).double()  # [C, C], of the query from the key
        penalty = (2**exponents)[:, None, None] * distance
        # Later tokens are never visible.
        penalty = penalty.masked_fill(distance < 0, math.inf)
        self.register_buffer("penalty", penalty.float(), persistent=False)


class DistanceAttention(nn.Module):
    """Causal attention softmax(q k^T / (temperature sqrt(K)) - penalty) v; the penalty is not scaled."""

    def __init__(self, bias: DistanceBias, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.bias = bias
        self.temperature = temperature

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend: three [B, H, N, K] to one. Keys where the mask [B, N] is False are padding and ignored."""
        tokens = q.shape[-2]
        bias = -self.bias.penalty[:, :tokens, :tokens].to(q.dtype)
        if mask is not None:
            bias = bias.masked_fill(~mask[:, None, None, :], -math.inf)
        scale = 1 / (self.temperature * math.sqrt(q.shape[-1]))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)
