"""Rotary position embeddings: queries and keys are rotated, so that their products depend on relative positions.

Shapes: B = batch, H = heads, N = tokens, K = head dim, P = pairs of features, K // 2.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention


class Rotary(nn.Module):
    """A rotation of feature pairs by angles that grow with the position (Su et al., RoFormer, 2021, equation 15).

    Features p and P + p are a pair, as in Hugging Face's LLaMA, and rotate by n / base^(p / P) at position n. If K is
    odd, the last feature is unchanged.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, head_dim: int, tokens: int, base: float = 1e4) -> None:
        super().__init__()
        pairs = head_dim // 2
        self.split = (pairs, pairs, head_dim - 2 * pairs)
        angles = torch.outer(torch.arange(tokens).float(), base ** -(torch.arange(pairs) / pairs))  # [N, P]
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Rotate [B, H, N, K], starting at position 0."""
        cos, sin = self.cos[: x.shape[-2]], self.sin[: x.shape[-2]]
        first, second, rest = x.split(self.split, dim=-1)
        halves = first * cos - second * sin, second * cos + first * sin
        return torch.cat((*halves, rest), dim=-1).type_as(x)


class RotaryAttention(nn.Module):
    """Attention with rotated queries and keys."""

    def __init__(self, rotary: Rotary, attend: nn.Module) -> None:
        super().__init__()
        self.rotary = rotary
        self.attend = attend

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend: three [B, H, N, K] to one. Keys where the mask [B, N] is False are padding and ignored."""
        return self.attend(self.rotary(q), self.rotary(k), v, mask)  # type: ignore[no-any-return]  # nn.Module returns Any


def rotary_by_block(architecture: Architecture, context: int, *, causal: bool) -> Callable[[int], nn.Module]:
    """Return the rotary attention of each block; blocks with equal head dims share their angles."""
    lengths = architecture.by_block("head_dim")
    tables = {length: Rotary(length, context) for length in set(lengths)}
    return lambda block: RotaryAttention(tables[lengths[block]], SoftmaxAttention(causal=causal))
