"""timm's vision models with changed depth and heads, by family.

A model may have stages. Then `depth` is its total number of blocks; `heads`, `width` and `hidden` are those of the
stage with most blocks. A new depth scales every stage in proportion, to at least one block; new heads scale those of
every stage by one factor. As in timm, heads * head dim is the width.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from typing import Any

import timm
import torch
from torch import nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError


@dataclass(frozen=True, slots=True)
class Family:
    """A family of timm models: its constructor arguments, and where its networks have blocks and layers.

    Attributes:
        depth: The constructor's argument for the blocks.
        heads: The constructor's argument for the heads.
        stages: Maps a network to its stages, each a sequence of blocks.
        layers: Maps a block to its attention and its feed-forward layer.
    """

    depth: str
    heads: str
    stages: Callable[[Any], list[Any]]
    layers: Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Stages:
    """The sizes of a timm model, one number per stage.

    Attributes:
        family: The name of its class.
        image: Channels, height and width of its input.
        depths: Number of blocks.
        heads: Heads of one block.
        widths: Features between blocks.
        hidden: Hidden features of a feed-forward layer.
        stem: Features of VOLO's stem, 0 elsewhere.
    """

    family: str
    image: tuple[int, int, int]
    depths: tuple[int, ...]
    heads: tuple[int, ...]
    widths: tuple[int, ...]
    hidden: tuple[int, ...]
    stem: int

    @property
    def main(self) -> int:
        """Index of the stage with most blocks."""
        return self.depths.index(max(self.depths))


def _plain(network: Any) -> list[Any]:
    return [network.blocks]


def _usual(block: Any) -> tuple[Any, Any]:
    return block.attn, block.mlp


MODEL_FAMILIES: Mapping[str, Family] = {
    "VisionTransformer": Family("depth", "num_heads", _plain, _usual),
    "Xcit": Family("depth", "num_heads", _plain, _usual),
    "TNT": Family("depth", "num_heads_outer", _plain, lambda block: (block.attn_out, block.mlp)),
    "DaVit": Family(
        "depths", "num_heads", lambda net: [stage.blocks for stage in net.stages], lambda block: _usual(block[0])
    ),
    "VOLO": Family(
        "layers", "num_heads", lambda net: [part for part in net.network if isinstance(part, nn.Sequential)], _usual
    ),
}
"""timm's class -> its family."""


def base_of(model: str) -> Architecture:
    """Return the architecture of a timm model. Raises UserError if it is unknown or its family is not supported."""
    stages = _stages(model)
    main = stages.main
    return Architecture(
        depth=sum(stages.depths),
        width=stages.widths[main],
        heads=stages.heads[main],
        hidden=stages.hidden[main],
        model=model,
    )


def depths_of(model: str, factors: Sequence[Fraction]) -> tuple[int, ...]:
    """Return the model's depth times each factor, without those that leave fewer blocks than stages."""
    stages = _stages(model)
    depth = sum(stages.depths)
    return tuple(sorted({round(depth * factor) for factor in factors if round(depth * factor) >= len(stages.depths)}))


def heads_of(model: str) -> tuple[int, ...]:
    """Return the valid numbers of heads, from a quarter to twice the model's own."""
    stages = _stages(model)
    few, many = stages.heads[stages.main] / 4, stages.heads[stages.main] * 2
    return tuple(heads for heads in range(1, many + 1) if heads >= few and _heads(stages, heads))


def family_arguments(architecture: Architecture, image: tuple[int, int, int], classes: int) -> dict[str, Any]:
    """Return timm's constructor arguments for the architecture's depth and heads, and this number of classes.

    Raises:
        UserError: As `base_of`; images of another size, a width or hidden features that are not the model's, or an
            invalid depth or number of heads.
    """
    name = architecture.model
    stages, base = _stages(name), base_of(name)
    if image != stages.image:
        message = f"timm's {name} needs images of {stages.image}, got {image}. Choose another model."
        raise UserError("mismatch", message, option="model", value=name, image=image, expected=stages.image)
    for field in ("width", "hidden"):
        value, expected_size = getattr(architecture, field), getattr(base, field)
        if value != expected_size:
            message = f"{field} of timm's {name} must be {expected_size}, got {value}."
            raise UserError("mismatch", message, option=field, value=value, expected=expected_size, model=name)
    depths, heads = _depths(name, stages, architecture.depth), _heads(stages, architecture.heads)
    if not heads:
        able = heads_of(name)
        rule = f"heads of timm's {name} must divide the width of each stage"
        message = f"{rule}, got {architecture.heads}. Choose from: {', '.join(map(str, able))}."
        raise UserError("mismatch", message, option="heads", value=architecture.heads, choices=able, model=name)
    family = MODEL_FAMILIES[stages.family]
    has_stages = len(depths) > 1
    return {
        family.depth: depths if has_stages else depths[0],
        family.heads: heads if has_stages else heads[0],
        "num_classes": classes,
    }


def build_family(
    architecture: Architecture, image: tuple[int, int, int], classes: int, *, drop_path: float = 0.0
) -> nn.Module:
    """Build a timm model with the architecture's depth and heads, for images of (channels, height, width).

    Raises:
        UserError: As `family_arguments`.
    """
    name = architecture.model
    arguments = {**family_arguments(architecture, image, classes), "drop_path_rate": drop_path}
    stages = _stages(name)
    if stages.family == "VOLO":  # timm's constructors per size take neither depth nor heads
        ratios: Any = tuple(hidden / width for hidden, width in zip(stages.hidden, stages.widths, strict=True))
        volo: nn.Module = timm.models.VOLO(
            embed_dims=list(stages.widths), stem_hidden_dim=stages.stem, mlp_ratio=ratios, **arguments
        )
        return volo
    model: nn.Module = timm.create_model(name, **arguments)
    return model


def blocks_of(network: nn.Module) -> list[nn.Module]:
    """Return the blocks of a timm model, in order; none for any other network."""
    kind = type(network).__name__
    return (
        [block for stage in MODEL_FAMILIES[kind].stages(network) for block in stage] if kind in MODEL_FAMILIES else []
    )


def _unknown(name: str) -> UserError:
    near = next(iter(get_close_matches(name, timm.list_models(), n=1)), None)
    remedy = f"Did you mean {near!r}?" if near else "See timm.list_models()."
    message = f"unknown timm model {name!r}. {remedy}"
    return UserError("unknown-name", message, option="model", value=name, nearest=near)


@cache
def _stages(name: str) -> Stages:
    if not timm.is_model(name):
        raise _unknown(name)
    with torch.device("meta"):
        network: Any = timm.create_model(name)
    kind = type(network).__name__
    if kind not in MODEL_FAMILIES:
        message = (
            f"depth and heads of timm's {name} cannot be set: it is a {kind}. Supported: {', '.join(MODEL_FAMILIES)}."
        )
        choices = tuple(MODEL_FAMILIES)
        raise UserError("unsupported", message, option="model", value=name, family=kind, choices=choices)
    stages = MODEL_FAMILIES[kind].stages(network)
    try:
        firsts = [MODEL_FAMILIES[kind].layers(stage[0]) for stage in stages]
    except AttributeError:
        message = f"heads of timm's {name} cannot be set: this {kind} has custom blocks."
        raise UserError("unsupported", message, option="model", value=name, family=kind) from None
    return Stages(
        family=kind,
        image=network.default_cfg["input_size"],
        depths=tuple(map(len, stages)),
        heads=tuple(attention.num_heads for attention, _ in firsts),
        widths=tuple(mlp.fc1.in_features for _, mlp in firsts),
        hidden=tuple(mlp.fc1.out_features for _, mlp in firsts),
        stem=network.patch_embed.conv[0].out_channels if kind == "VOLO" else 0,
    )


def _depths(name: str, stages: Stages, depth: int) -> tuple[int, ...]:
    """Divide the blocks among stages in proportion; the longest stage absorbs the rounding."""
    depths = [max(1, round(Fraction(blocks * depth, sum(stages.depths)))) for blocks in stages.depths]
    depths[stages.main] += depth - sum(depths)
    if depths[stages.main] < 1:
        message = f"depth of timm's {name} must be more than its {len(depths)} stages, got {depth}."
        raise UserError("out-of-range", message, option="depth", value=depth, stages=len(depths), model=name)
    return tuple(depths)


def _heads(stages: Stages, heads: int) -> tuple[int, ...]:
    """Return the heads of each stage; empty if they do not divide the widths or are not whole numbers."""
    fractions = [Fraction(stage * heads, stages.heads[stages.main]) for stage in stages.heads]
    if any(h.denominator > 1 or width % h for h, width in zip(fractions, stages.widths, strict=True)):
        return ()
    return tuple(map(int, fractions))
