"""Attention that looks less far the further away a token is, in place of positions.

Shapes: B = batch, H = heads, N = tokens, C = context (the most tokens there can be), K = head dim.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class DistanceBias(nn.Module):
    """What is taken from each logit: slope times distance (Press et al., "Train Short, Test Long", ALiBi, 2022).

    Slopes fall geometrically from 2^(-8/H) to 2^-8, whatever H is; one head has 2^-8. For an H that is no power of
    two the paper interleaves two such rows; this is the official code of residual matrix transformers.
    """

    penalty: Tensor

    def __init__(self, heads: int, context: int) -> None:
        super().__init__()
        exponents = -8 * torch.arange(1, heads + 1).double() / heads
        position = torch.arange(context)
        distance = (position[:, None] - position).double()  # [C, C], of the query from the key
        penalty = (2**exponents)[:, None, None] * distance
        # What comes later is never seen.
        penalty = penalty.masked_fill(distance < 0, math.inf)
        self.register_buffer("penalty", penalty.float(), persistent=False)


class DistanceAttention(nn.Module):
    """softmax(q k^T / (temperature sqrt(K)) - penalty) v: causal, the penalty outside what is divided."""

    def __init__(self, bias: DistanceBias, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.bias = bias
        self.temperature = temperature

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend: three [B, H, N, K] to one. Keys that the mask [B, N] is False for are padding, and not seen."""
        tokens = q.shape[-2]
        bias = -self.bias.penalty[:, :tokens, :tokens].to(q.dtype)
        if mask is not None:
            bias = bias.masked_fill(~mask[:, None, None, :], -math.inf)
        scale = 1 / (self.temperature * math.sqrt(q.shape[-1]))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)
