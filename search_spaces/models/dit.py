"""The diffusion transformer (Peebles and Xie, 2023, adaLN-Zero), equal to its authors' when the topology is resnet.

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
from search_spaces.support.count import Count, linear

DIT = TransformerStyle(BARE, GELU_TANH, attention_bias=True, feed_forward_bias=True, parts=1, takes_condition=True)
_WAVES = 256
"""Features of a time before they are mapped."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """What a DiT reads and writes.

    Attributes:
        shape: Channels, height and breadth.
        patch: Side of a patch, P.
        classes: How many kinds of pictures there are; the class of that number stands for none.
    """

    shape: tuple[int, int, int]
    patch: int
    classes: int

    @property
    def patches(self) -> int:
        """How many a picture has, N."""
        return math.prod(side // self.patch for side in self.shape[1:])

    @property
    def patch_features(self) -> int:
        """Numbers in a patch, C P P."""
        return self.shape[0] * self.patch**2


def sinusoids(places: Tensor, features: int) -> Tensor:
    """Angles of places [...] at `features // 2` frequencies from 1 down to 1 / 10000: [..., features // 2]."""
    half = features // 2
    return places.float()[..., None] * torch.exp(
        torch.arange(half, device=places.device) * (-math.log(1e4) / max(1, half))
    )


def grid_positions(rows: int, columns: int, width: int) -> Tensor:
    """Fixed features of each position of a grid, row by row, [rows * columns, width].

    The first half is of the column and the second of the row, each with sines before cosines, as in MAE and DiT; of a
    width that is no multiple of 4 the last features are 0.
    """
    quarter = width // 4
    across, down = torch.arange(columns).repeat(rows), torch.arange(rows).repeat_interleave(columns)
    angles = [sinusoids(indices, 2 * quarter) for indices in (across, down)]
    waves = [wave for angle in angles for wave in (angle.sin(), angle.cos())]
    return torch.cat((*waves, torch.zeros(rows * columns, width - 4 * quarter)), dim=1)


class Patches(nn.Module):
    """Pictures to tokens: a linear map of each patch, beside fixed positions."""

    positions: Tensor

    def __init__(self, pictures: Pictures, width: int) -> None:
        super().__init__()
        self.patch = pictures.patch
        self.project = nn.Linear(pictures.patch_features, width)
        rows, columns = (side // pictures.patch for side in pictures.shape[1:])
        self.register_buffer("positions", grid_positions(rows, columns, width), persistent=False)

    def forward(self, pictures: Tensor) -> Tensor:
        """Map [B, C, height, breadth] to tokens [B, N, D]."""
        grid = pictures.unflatten(3, (-1, self.patch)).unflatten(2, (-1, self.patch))  # [B, C, rows, P, columns, P]
        return self.project(grid.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)) + self.positions  # type: ignore[no-any-return]


class Condition(nn.Module):
    """What a network is told beside the picture: how far the noise has come, and of which class the picture is."""

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
    """Normed tokens to patches, scaled and shifted by the condition; both of its maps start at 0."""

    def __init__(self, width: int, features: int) -> None:
        super().__init__()
        self.modulation = Modulation(width, 2, width)
        self.out = nn.Linear(width, features)

    def forward(self, tokens: Tensor, condition: Tensor) -> Tensor:
        """Map [B, N, D] and [B, D] to [B, N, features]."""
        return self.out(modulate(tokens, *self.modulation(condition)))  # type: ignore[no-any-return]


class DiT(nn.Module):
    """Patches, a transformer whose layers hear of time and class, and a head that writes each patch twice.

    Once as the noise that it holds, and once as where the variance of a step back stands between its bounds.
    """

    def __init__(self, pictures: Pictures, stack: Stack, width: int) -> None:
        super().__init__()
        self.pictures = pictures
        self.embedding = Patches(pictures, width)
        self.condition = Condition(pictures.classes, width)
        self.stack = stack
        self.head = ModulatedHead(width, 2 * pictures.patch_features)

    def forward(self, pictures: Tensor, times: Tensor, classes: Tensor) -> Tensor:
        """Map noisy pictures [B, C, height, breadth], times [B] and classes [B] to [B, 2 C, height, breadth]."""
        condition = self.condition(times, classes)
        patches = self.head(self.stack(self.embedding(pictures), condition=condition), condition)
        side = self.pictures.patch
        rows = self.pictures.shape[1] // side
        grid = patches.unflatten(2, (side, side, -1)).unflatten(1, (rows, -1))  # [B, rows, columns, P, P, 2 C]
        return grid.permute(0, 5, 1, 3, 2, 4).flatten(4, 5).flatten(2, 3)  # type: ignore[no-any-return]


def build_dit(architecture: Architecture, pictures: Pictures) -> DiT:
    """A DiT, initialised as its authors do: every block starts as if it were not there, and all outputs at 0.

    Raises:
        UserError: The architecture has no heads, or its topology cannot wire it.
    """
    stack = build_transformer(architecture, DIT, lambda block: SoftmaxAttention(causal=False))
    model = DiT(pictures, stack, architecture.width)
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
    stack.topology.start(stack.layers)
    return model


def count_dit(architecture: Architecture, pictures: Pictures) -> Count:
    """Closed form of that network for one picture."""
    width, patches = architecture.width, pictures.patches
    embedding = linear(pictures.patch_features, width).times(patches)
    condition = linear(_WAVES, width) + linear(width, width) + Count(params=(pictures.classes + 1) * width)
    head = linear(width, 2 * width) + linear(width, 2 * pictures.patch_features).times(patches)
    return embedding + condition + count_transformer(architecture, DIT, patches) + head
