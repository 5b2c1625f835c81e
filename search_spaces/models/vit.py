"""The vision transformer (Dosovitskiy et al., 2021), equal to timm's `vit_*` if the topology is resnet.

Shapes: B = batch, C = channels, P = patch side, N = tokens (patches and one class token), D = width.
"""

import math
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import Attention, SoftmaxAttention
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.support.count import Count, linear

VIT = TransformerStyle(Norm("layer", 1e-6), GELU, attention_bias=True, feed_forward_bias=True, num_embeddings=2)


def init_timm(weight: Tensor) -> None:
    """Initialize a weight exactly as timm does: N(0, 0.02^2), clamped to [-2, 2].

    torch's own `trunc_normal_` gives other numbers, and timm's would load all of timm, which takes two seconds.
    """
    with torch.no_grad():
        weight.uniform_(-1, 1).erfinv_().mul_(0.02 * math.sqrt(2)).clamp_(-2, 2)


def patchify(images: Tensor, patch: int) -> Tensor:
    """Cut images [B, C, height, width] into patches, row by row: [B, patches, C P P]."""
    grid = images.unflatten(3, (-1, patch)).unflatten(2, (-1, patch))  # [B, C, rows, P, columns, P]
    patches: Tensor = grid.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
    return patches


class PatchTokens(nn.Module):
    """The patch embedding: a linear map of each patch, a class token, and learned positions."""

    def __init__(self, image: tuple[int, int, int], patch: int, width: int) -> None:
        super().__init__()
        channels, height, breadth = image
        self.patch = patch
        # timm's PatchEmbed is the same map as a strided convolution, which cannot be traced on the meta device.
        self.project = nn.Linear(channels * patch * patch, width)
        tokens = (height // patch) * (breadth // patch) + 1
        self.first = nn.Parameter(torch.empty(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, tokens, width))
        nn.init.normal_(self.first, std=1e-6)
        init_timm(self.positions)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Map [B, C, height, width] to tokens [B, N, D] and positions [1, N, D]; their sum is the embedding."""
        patches = self.project(patchify(images, self.patch))  # [B, N - 1, D]
        return torch.cat((self.first.expand(patches.shape[0], -1, -1), patches), dim=1), self.positions


@dataclass(frozen=True, slots=True)
class DropExamples:
    """A forward hook that zeroes a share of the examples in a layer's output while training (stochastic depth).

    It is a hook and not a wrapping module, so that parameters keep their names.
    """

    share: float

    def __call__(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        """Map the layer's output, [B, ...]; the remaining examples are scaled up to keep the mean."""
        if not layer.training or self.share == 0:
            return output
        mask = output.new_empty(len(output), *(1,) * (output.ndim - 1)).bernoulli_(1 - self.share)
        return output * (mask / (1 - self.share or 1.0))  # with a share of 1 nothing remains


class ViT(nn.Module):
    """Patch tokens, a transformer stack, and a linear classifier of the class token."""

    def __init__(self, embedding: PatchTokens, stack: Stack, head: nn.Linear) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.head = head

    def forward(self, images: Tensor) -> Tensor:
        """Map [B, C, height, width] to class scores [B, classes]."""
        return self.head(self.stack(*self.embedding(images))[:, 0])  # type: ignore[no-any-return]


def build_vit(
    architecture: Architecture, image: tuple[int, int, int], patch: int, classes: int, *, drop_path: float = 0.0
) -> ViT:
    """Build a ViT for images of (channels, height, width), initialized as timm does.

    `drop_path` is the share of examples that the last block drops; it grows linearly from 0 over the blocks.

    Raises:
        UserError: The architecture has no heads, or its topology cannot be used with it.
    """
    stack = build_transformer(architecture, VIT, lambda block: SoftmaxAttention(causal=False))
    numbers = accumulate(isinstance(layer, Attention) for layer in stack.layers)  # each layer's block, from 1
    for layer, number in zip(stack.layers, numbers, strict=True):
        share = drop_path * (number - 1) / max(1, architecture.depth - 1)
        if share:
            last = layer.get_submodule("out" if isinstance(layer, Attention) else "down")
            last.register_forward_hook(DropExamples(share))
    model = ViT(PatchTokens(image, patch, architecture.width), stack, nn.Linear(architecture.width, classes))
    for module in (*stack.layers.modules(), model.head):
        if isinstance(module, nn.Linear):
            init_timm(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    stack.topology.init_layers(stack.layers)
    return model


def count_vit(architecture: Architecture, image: tuple[int, int, int], patch: int, classes: int) -> Count:
    """Count `build_vit` in closed form, for one image."""
    channels, height, breadth = image
    width, patches = architecture.width, math.prod((height // patch, breadth // patch))
    tokens = patches + 1
    embedding = linear(channels * patch * patch, width).at_positions(patches) + Count(params=width + tokens * width)
    return embedding + count_transformer(architecture, VIT, tokens) + linear(width, classes)
