"""A handwritten, fast GPT-2 after nanoGPT: the decoder of a bare training loop."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture


class Block(nn.Module):
    """Causal attention and a feed-forward layer, each with a pre-norm and a skip connection."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        width, self.heads = shape.width, shape.heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, shape.hidden), nn.Linear(shape.hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, T, D] to [B, T, D]."""
        q, k, v = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(self.norms[0](x)).split(x.shape[2], dim=2)
        )
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class PlainGPT(nn.Module):
    """A decoder from tokens [B, T] to logits [B, T, vocabulary], with tied embeddings."""

    def __init__(self, shape: Architecture, vocabulary: int, context: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, shape.width), nn.Embedding(context, shape.width)
        self.blocks = nn.Sequential(*(Block(shape) for _ in range(shape.depth)))
        self.norm = nn.LayerNorm(shape.width)
        for weights in self.parameters():
            if weights.ndim == 2:
                nn.init.normal_(weights, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits."""
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.blocks(self.tokens(ids) + self.places(places)))
        return F.linear(x, self.tokens.weight)
