"""The diffusion transformer (Peebles and Xie, 2023, adaLN-Zero), equal to its authors' if the topology is resnet.

Shapes: B = batch, C = channels, P = patch side, N = tokens (patches), D = width.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.feed_forward import GELU_TANH
from search_spaces.layers.modulated import BARE, Modulation, modulate
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.models.vit import patchify
from search_spaces.support.count import Count, linear

DIT = TransformerStyle(
    BARE, GELU_TANH, attention_bias=True, feed_forward_bias=True, num_embeddings=1, takes_condition=True
)
_WAVES = 256
"""Sinusoidal features of a diffusion time."""


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """The images that a DiT reads and writes.

    Attributes:
        shape: Channels, height and width.
        patch: Side of a patch, P.
        classes: Number of classes; the class index with this value means no class.
    """

    shape: tuple[int, int, int]
    patch: int
    classes: int

    @property
    def patches(self) -> int:
        """Number of patches in an image, N."""
        return math.prod(side // self.patch for side in self.shape[1:])

    @property
    def patch_features(self) -> int:
        """Values in a patch, C P P."""
        return self.shape[0] * self.patch**2


def sinusoids(places: Tensor, features: int) -> Tensor:
    """Return angles of positions [...] at `features // 2` frequencies from 1 towards 1e-4: [..., features // 2]."""
    half = features // 2
    return places.float()[..., None] * torch.exp(
        torch.arange(half, device=places.device) * (-math.log(1e4) / max(1, half))
    )


def grid_positions(rows: int, columns: int, width: int) -> Tensor:
    """Return fixed position features of a grid, row by row: [rows * columns, width].

    The first half encodes the column and the second the row, each with sines before cosines, as in MAE and DiT. If the
    width is no multiple of 4, the last features are 0.
    """
    quarter = width // 4
    across, down = torch.arange(columns).repeat(rows), torch.arange(rows).repeat_interleave(columns)
    angles = [sinusoids(indices, 2 * quarter) for indices in (across, down)]
    waves = [wave for angle in angles for wave in (angle.sin(), angle.cos())]
    return torch.cat((*waves, torch.zeros(rows * columns, width - 4 * quarter)), dim=1)


class Patches(nn.Module):
    """The patch embedding: a linear map of each patch plus fixed positions."""

    positions: Tensor

    def __init__(self, image: ImageSpec, width: int) -> None:
        super().__init__()
        self.patch = image.patch
        self.project = nn.Linear(image.patch_features, width)
        rows, columns = (side // image.patch for side in image.shape[1:])
        self.register_buffer("positions", grid_positions(rows, columns, width), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Map [B, C, height, width] to tokens [B, N, D]."""
        return self.project(patchify(images, self.patch)) + self.positions  # type: ignore[no-any-return]


class Condition(nn.Module):
    """The condition of a DiT: embeddings of the diffusion time and of the class."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(_WAVES, width), nn.Linear(width, width)
        self.classes = nn.Embedding(classes + 1, width)

    def forward(self, times: Tensor, classes: Tensor) -> Tensor:
        """Map times [B] and classes [B] to [B, D]."""
        angles = sinusoids(times, _WAVES)
        waves = torch.cat((angles.cos(), angles.sin()), dim=-1).to(self.first.weight.dtype)
        return self.second(F.silu(self.first(waves))) + self.classes(classes)  # type: ignore[no-any-return]


class ModulatedHead(nn.Module):
    """The output head: normed tokens, scaled and shifted by the condition, to patches; both maps start at 0."""

    def __init__(self, width: int, features: int) -> None:
        super().__init__()
        self.modulation = Modulation(width, 2, width)
        self.out = nn.Linear(width, features)

    def forward(self, tokens: Tensor, condition: Tensor) -> Tensor:
        """Map [B, N, D] and [B, D] to [B, N, features]."""
        return self.out(modulate(tokens, *self.modulation(condition)))  # type: ignore[no-any-return]


class DiT(nn.Module):
    """The diffusion transformer: patches, a conditioned transformer, and a head with two outputs per patch.

    One output is the noise, the other the position of the reverse step's variance between its bounds.
    """

    def __init__(self, image: ImageSpec, stack: Stack, width: int) -> None:
        super().__init__()
        self.image = image
        self.embedding = Patches(image, width)
        self.condition = Condition(image.classes, width)
        self.stack = stack
        self.head = ModulatedHead(width, 2 * image.patch_features)

    def forward(self, images: Tensor, times: Tensor, classes: Tensor) -> Tensor:
        """Map noisy images [B, C, height, width], times [B] and classes [B] to [B, 2 C, height, width]."""
        condition = self.condition(times, classes)
        patches = self.head(self.stack(self.embedding(images), condition=condition), condition)
        side = self.image.patch
        rows = self.image.shape[1] // side
        grid = patches.unflatten(2, (side, side, -1)).unflatten(1, (rows, -1))  # [B, rows, columns, P, P, 2 C]
        return grid.permute(0, 5, 1, 3, 2, 4).flatten(4, 5).flatten(2, 3)  # type: ignore[no-any-return]


def build_dit(architecture: Architecture, image: ImageSpec) -> DiT:
    """Build a DiT with its authors' initialization: every block starts as the identity, and all outputs at 0.

    Raises:
        UserError: The architecture has no heads, or its topology cannot be used with it.
    """
    stack = build_transformer(architecture, DIT, lambda block: SoftmaxAttention(causal=False))
    model = DiT(image, stack, architecture.width)
    modulations = {id(module.map) for module in model.modules() if isinstance(module, Modulation)}
    for module in (*stack.layers.modules(), model.embedding.project):
        if isinstance(module, nn.Linear) and id(module) not in modulations:
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    condition = model.condition
    for table in (condition.first, condition.second, condition.classes):
        nn.init.normal_(table.weight, std=0.02)
    for weights in (condition.first.bias, condition.second.bias, model.head.out.weight, model.head.out.bias):
        nn.init.zeros_(weights)
    stack.topology.init_layers(stack.layers)
    return model


def count_dit(architecture: Architecture, image: ImageSpec) -> Count:
    """Count `build_dit` in closed form, for one image."""
    width, patches = architecture.width, image.patches
    embedding = linear(image.patch_features, width).at_positions(patches)
    condition = linear(_WAVES, width) + linear(width, width) + Count(params=(image.classes + 1) * width)
    head = linear(width, 2 * width) + linear(width, 2 * image.patch_features).at_positions(patches)
    return embedding + condition + count_transformer(architecture, DIT, patches) + head
