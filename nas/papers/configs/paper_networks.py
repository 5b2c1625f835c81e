"""The networks of readings, built on the meta device to be counted."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import timm
from torch import nn

from nas.costs.count import meta_device
from nas.papers.configs import PaperConfig
from nas.papers.configs.formulas import value_of
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.nystrom import Nystrom
from search_spaces.models.encoder import EncoderSizes, build_encoder
from search_spaces.models.masked_encoder import build_masked
from search_spaces.models.vit import build_vit
from search_spaces.spaces.parsing import parse_architecture
from tasks.load import task_class
from tasks.vision.imagenet import ImageNetViT

_LRA = {
    "listops": EncoderSizes(vocabulary=32, context=2048, classes=10),
    "text": EncoderSizes(vocabulary=512, context=4096, classes=2),
    "retrieval": EncoderSizes(vocabulary=512, context=4096, classes=2, texts=2),
    "image": EncoderSizes(vocabulary=512, context=1024, classes=10),
    "pathfinder": EncoderSizes(vocabulary=512, context=1024, classes=2),
}
"""Task -> its sizes in Nyströmformer's code for the Long Range Arena (LRA/code/lra_config.py)."""

_LRA_BASE = Architecture(depth=2, width=64, heads=2, head_dim=32, hidden=128)


def params(reading: PaperConfig) -> int:
    """Return the parameters of a reading's network, its formula included.

    Raises:
        UserError: A network that cannot be built, or an invalid formula.
    """
    if reading.network.startswith("timm:"):
        with meta_device():
            return _count(_timm(reading.network.removeprefix("timm:"), reading.architecture), reading)
    architecture = architecture_of(reading)
    with meta_device():
        number = _count(build(reading, architecture), reading)
    sizes = {name: getattr(architecture, name) for name in ("depth", "width", "heads", "head_dim", "hidden")}
    return number + (value_of(reading.formula, sizes) if reading.formula else 0)


def _count(network: nn.Module, reading: PaperConfig) -> int:
    return sum(p.numel() for p in network.parameters() if reading.counts == "all" or p.ndim == 2)


def architecture_of(reading: PaperConfig) -> Architecture:
    """Return the architecture of a reading; timm's models have none."""
    match reading.network.partition(":")[0]:
        case "vit" | "crammed-bert":
            base = ImageNetViT.base
        case "lra" | "lra-conv":
            base = _LRA_BASE
        case _:
            base = task_class(reading.network)().base_for(reading.preset)
    return parse_architecture(reading.architecture, base)


def build(reading: PaperConfig, architecture: Architecture) -> nn.Module:
    """Build the network of a reading, without the parts of its formula."""
    family, _, name = reading.network.partition(":")
    match family:
        case "vit":
            return build_vit(architecture, ImageNetViT.image, ImageNetViT.patch, classes=1000)
        case "lra" | "lra-conv":
            kernel = 35 if family == "lra-conv" else None  # that code has 64 landmarks
            return build_encoder(architecture, replace(_LRA[name], attention=Nystrom(landmarks=64, kernel=kernel)))
        case "crammed-bert":
            return build_masked(architecture, "crammed-bert", 32_768, 128)
    return task_class(reading.network)().build(architecture)


def _timm(name: str, text: str) -> nn.Module:
    """Build a timm model by its registered name, or a class by MODULE.CLASS.

    Classes are for models whose registered constructors take no depth or heads.

    `head_dim`, which no constructor takes, widens the attention of all blocks. The parameters are then those of heads *
    head_dim features, but the model does not run.
    """
    options = dict(_option(part) for part in text.split(",") if part)
    head_dim = options.pop("head_dim", None)
    module, dot, kind = name.partition(".")
    make = getattr(import_module(f"timm.models.{module}"), kind) if dot else lambda **o: timm.create_model(name, **o)
    model: nn.Module = make(**options)
    if head_dim is not None:
        _widen(model, head_dim)
    return model


def _option(part: str) -> tuple[str, Any]:
    """Parse "layers=4/4/8/2" to a tuple with a number for each stage, and "depth=12" to a number."""
    name, _, text = part.partition("=")
    numbers = tuple(float(number) if "." in number else int(number) for number in text.split("/"))
    return name, numbers if len(numbers) > 1 else numbers[0]


def _widen(model: nn.Module, head_dim: int) -> None:
    """Change the head dimension of every attention layer, except class attention and TNT's inner layers."""
    for name, layer in model.named_modules():
        inputs = {part for part, _ in layer.named_children()}
        # Class attention has a separate map for the queries.
        if "proj" in inputs and inputs & {"qkv", "v"} and "q" not in inputs and not name.endswith("attn_in"):
            _widen_layer(layer, head_dim)


def _widen_layer(layer: Any, head_dim: int) -> None:
    heads = layer.groups if hasattr(layer, "groups") else layer.num_heads  # DaViT's channel attention has groups
    inner, width = heads * head_dim, layer.proj.out_features
    for name, parts in (("qkv", 3), ("qk", 2), ("v", 1)):
        if hasattr(layer, name):
            setattr(layer, name, nn.Linear(width, parts * inner, bias=getattr(layer, name).bias is not None))
    layer.proj = nn.Linear(inner, width)
