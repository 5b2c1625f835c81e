"""The networks that printed rows are read as, built on the meta device to be counted."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import timm
from torch import nn

from nas.counting import meta_device
from nas.readings import Reading
from search_spaces.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.feed_forward import SWIGLU
from search_spaces.layers.norm import Norm
from search_spaces.layers.nystrom import Nystrom
from search_spaces.layers.transformer import TransformerStyle, build_transformer
from search_spaces.models.encoder import EncoderSizes, build_encoder
from search_spaces.models.vit import build_vit
from search_spaces.parsing import parse_architecture
from tasks.imagenet import ImageNetViT
from tasks.load import task_class

_LRA = {
    "listops": EncoderSizes(vocabulary=32, context=2048, classes=10),
    "text": EncoderSizes(vocabulary=512, context=4096, classes=2),
    "retrieval": EncoderSizes(vocabulary=512, context=4096, classes=2, texts=2),
    "image": EncoderSizes(vocabulary=512, context=1024, classes=10),
    "pathfinder": EncoderSizes(vocabulary=512, context=1024, classes=2),
}
"""The tasks as Nyströmformer's code for the Long Range Arena has them (LRA/code/lra_config.py)."""


def params(reading: Reading) -> int:
    """Parameters of the network that a row is read as. Raises UserError for a network that cannot be built."""
    with meta_device():
        network = _network(reading)
    return sum(p.numel() for p in network.parameters() if reading.counts == "all" or p.ndim == 2)


def _network(reading: Reading) -> nn.Module:
    family, _, name = reading.network.partition(":")
    match family:
        case "timm":
            return _timm(name, reading.architecture)
        case "vit":
            architecture = parse_architecture(reading.architecture, ImageNetViT.base)
            return build_vit(architecture, ImageNetViT.image, ImageNetViT.patch, classes=1000)
        case "lra" | "lra-conv":
            return _lra(name, reading.architecture, kernel=35 if family == "lra-conv" else None)
        case "crammed-bert":
            return _crammed_bert(reading.architecture)
    task = task_class(reading.network)()
    return task.build(parse_architecture(reading.architecture, task.base_for(reading.preset)))


def _lra(task: str, text: str, kernel: int | None) -> nn.Module:
    """That code's encoder with 64 landmarks; its convolution has 35 taps."""
    base = Architecture(depth=2, width=64, heads=2, head_dim=32, hidden=128)
    sizes = replace(_LRA[task], attention=Nystrom(landmarks=64, kernel=kernel))
    return build_encoder(parse_architecture(text, base), sizes)


def _crammed_bert(text: str) -> nn.Module:
    """Geiping and Goldstein (2023) and their code: no biases but those of norms, fixed positions, tied words."""
    base = ImageNetViT.base
    # Their gated GELU has as many weights as the gate by SiLU.
    style = TransformerStyle(Norm("layer", 1e-12), SWIGLU, attention_bias=False, feed_forward_bias=False, parts=1)
    architecture = parse_architecture(text, base)
    stack = build_transformer(architecture, style, lambda block: SoftmaxAttention(causal=False))
    width = architecture.width
    return nn.ModuleList([nn.Embedding(32_768, width), nn.LayerNorm(width), stack])


def _timm(name: str, text: str) -> nn.Module:
    """A registered model, or with a dot in its name a class (where the registered one takes no depth or heads).

    `head_dim`, which no constructor takes, widens the attention of the model's blocks: its parameters are then those
    of the construction with heads * head_dim features, but it does not run.
    """
    options = dict(_option(part) for part in text.split(",") if part)
    head_dim = options.pop("head_dim", None)
    module, dot, kind = name.partition(".")
    make = getattr(import_module(f"timm.models.{module}"), kind) if dot else lambda **o: timm.create_model(name, **o)
    model: nn.Module = make(**options)
    if head_dim is not None:
        _widen(model, options["num_heads"] * head_dim)
    return model


def _option(part: str) -> tuple[str, Any]:
    """ "layers=4/4/8/2" to a tuple of numbers a stage, and "depth=12" to a number."""
    name, _, text = part.partition("=")
    numbers = tuple(float(number) if "." in number else int(number) for number in text.split("/"))
    return name, numbers if len(numbers) > 1 else numbers[0]


def _widen(model: Any, inner: int) -> None:
    for block in model.blocks:
        attention, width = block.attn, block.attn.proj.out_features
        attention.qkv = nn.Linear(width, 3 * inner, bias=attention.qkv.bias is not None)
        attention.proj = nn.Linear(inner, width)
