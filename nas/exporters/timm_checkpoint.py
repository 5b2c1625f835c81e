"""Vision transformers as folders that timm loads: config.json and model.safetensors.

Shapes: B = batch, C = channels, H and W = height and width, D = width, P = patch side.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nas.costs.random_inputs import RandomInputs
from nas.evaluation.trained_network import TrainedNetwork
from nas.exporters.counterpart import check_heads, check_plain, provenance
from nas.exporters.export_format import (
    DynamicAxes,
    ExportError,
    Forward,
    class_names_of,
    inner_network,
    input_format_of,
    run_export_step,
)
from nas.exporters.standardization import Standardization, standardization_of
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import Record
from search_spaces.models.vit import ViT
from tasks.data.batches import Inputs, describe, tensors
from tasks.input_formats import ImageInputs, InputFormat
from tasks.vision.digits import AveragingViT

_POOLING: Mapping[type[nn.Module], Mapping[str, Any]] = {
    ViT: {"global_pool": "token"},
    AveragingViT: {"global_pool": "avg", "pool_include_prefix": True, "fc_norm": False},
}
"""Class of our network -> timm's arguments for what its classifier reads."""

_VIT = "vit_base_patch16_224"
"""A timm model without special layers; its sizes are overridden."""

_NO_SOURCE = dict.fromkeys(("tag", "license", "origin_url", "description", "paper_ids", "hf_hub_id", "url"))
"""Fields that describe timm's own weights of a model."""


def check_timm(network: nn.Module, record: Record) -> None:
    """Raise ExportError if timm has no model that equals this network."""
    inner, architecture = inner_network(network), record.architecture
    kind = type(inner).__name__
    is_known = type(inner).__module__.startswith("timm.models.") if architecture.model else type(inner) in _POOLING
    if not is_known:
        raise ExportError(f"timm has no counterpart of {kind}", problem="class", network=kind)
    if architecture.model:
        if kind == "VOLO":
            raise ExportError("timm's create_model changes neither depth nor heads of a VOLO", problem="class")
        return
    check_plain("timm's ViT", architecture)
    check_heads("timm's ViT", architecture)


def write_timm(network: nn.Module, draws: RandomInputs, axes: DynamicAxes, path: Path, record: Record) -> Forward:
    """Write a folder that `timm.create_model("local-dir:FOLDER", pretrained=True)` loads."""
    import timm  # takes three seconds

    inner = inner_network(network)
    (example,) = tensors(draws.example)
    name, arguments, weights = _model(inner, record.architecture, (*example.shape[1:],))
    standardization = _standardization(network)
    pretrained = {**_NO_SOURCE, **_input_config(network, standardization, example)}
    twin = run_export_step(timm.create_model, name, **arguments, pretrained_cfg_overlay=pretrained)
    run_export_step(twin.load_state_dict, weights)
    classes = class_names_of(network)
    config = {"nas": provenance(record), **({"label_names": classes} if classes else {})}
    run_export_step(
        timm.models.save_for_hf, twin, path, model_config=config, model_args=arguments, safe_serialization=True
    )
    loaded = run_export_step(timm.create_model, f"local-dir:{path}", pretrained=True).eval()
    if standardization is not None:  # as users of the folder read it
        preprocess: Callable[[Tensor], Tensor] = Standardization(
            *(tuple(loaded.pretrained_cfg[field]) for field in ("mean", "std"))
        )
    else:
        preprocess = network.preprocess if isinstance(network, TrainedNetwork) else nn.Identity()
    return torch.no_grad()(lambda inputs: [loaded(preprocess(*tensors(inputs)))])


def describe_timm_inputs(network: nn.Module, example: Inputs, axes: DynamicAxes) -> str:
    """Return type and shape of the folder's inputs, and how they follow from bytes."""
    if not isinstance(network, TrainedNetwork):
        return describe(example, axes)
    (images,) = tensors(network.preprocess(example))
    if (standardization := _standardization(network)) is None:
        return f"{describe(images, axes)}, after the task's own preprocessing, which config.json cannot hold"
    mean, std = (", ".join(map(str, values)) for values in (standardization.mean, standardization.std))
    return f"{describe(images, axes)}, (byte / 255 - mean) / std of a pixel, with mean {mean} and std {std}"


def timm_input_format(network: nn.Module) -> InputFormat | None:
    """Return what the folder's preprocessing takes; None if config.json cannot hold the task's."""
    return None if _standardization(network) is None else input_format_of(network)


def _model(
    network: nn.Module, architecture: Architecture, image: tuple[int, ...]
) -> tuple[str, dict[str, Any], Mapping[str, Tensor]]:
    """Return name, constructor arguments and weights of the timm model for images of [C, H, W]."""
    if architecture.model:
        from search_spaces.models.families import family_arguments  # takes three seconds

        channels, height, width = image
        classes: Any = network.num_classes
        arguments = family_arguments(architecture, (channels, height, width), classes)
        return architecture.model, arguments, network.state_dict()
    embedding: Any = network.embedding
    head: Any = network.head
    arguments = {
        "img_size": image[1:],
        "patch_size": embedding.patch,
        "in_chans": image[0],
        "num_classes": head.out_features,
        "embed_dim": architecture.width,
        "depth": architecture.depth,
        "num_heads": architecture.heads,
        "mlp_ratio": _mlp_ratio(architecture),
        **_POOLING[type(network)],
    }
    weights = {name: network.get_parameter(ours).detach() for name, ours in _weight_names(architecture.depth).items()}
    project = weights["patch_embed.proj.weight"]  # [D, C P P], and a convolution's [D, C, P, P] in timm
    weights["patch_embed.proj.weight"] = project.view(len(project), image[0], embedding.patch, embedding.patch)
    return _VIT, arguments, weights


def _weight_names(depth: int) -> dict[str, str]:
    """Return the names of a ViT's weights in timm -> those here."""
    names = {"cls_token": "embedding.first", "pos_embed": "embedding.positions"}
    for kind in ("weight", "bias"):
        names |= {f"patch_embed.proj.{kind}": f"embedding.project.{kind}"}
        names |= {f"norm.{kind}": f"stack.norm.{kind}", f"head.{kind}": f"head.{kind}"}
        for block in range(depth):
            attention, feed_forward = (f"stack.layers.{2 * block + layer}" for layer in (0, 1))
            names |= {
                f"blocks.{block}.norm1.{kind}": f"{attention}.project.norm.{kind}",
                f"blocks.{block}.attn.qkv.{kind}": f"{attention}.project.qkv.{kind}",
                f"blocks.{block}.attn.proj.{kind}": f"{attention}.out.{kind}",
                f"blocks.{block}.norm2.{kind}": f"{feed_forward}.norm.{kind}",
                f"blocks.{block}.mlp.fc1.{kind}": f"{feed_forward}.up.{kind}",
                f"blocks.{block}.mlp.fc2.{kind}": f"{feed_forward}.down.{kind}",
            }
    return names


def _mlp_ratio(architecture: Architecture) -> float:
    """Return a ratio of hidden features whose product with the width timm rounds down to exactly these."""
    ratio = architecture.hidden / architecture.width
    return ratio if int(architecture.width * ratio) == architecture.hidden else math.nextafter(ratio, math.inf)


def _standardization(network: nn.Module) -> Standardization | None:
    """Return the preprocessing of images that the network includes, if it is a standardization."""
    if not isinstance(network, TrainedNetwork) or not isinstance(network.input_format, ImageInputs):
        return None
    return standardization_of(network.preprocess, network.input_format)


def _input_config(network: nn.Module, standardization: Standardization | None, example: Tensor) -> dict[str, Any]:
    """Return the fields of timm's config that its transforms read; without a standardization, mean 0 and std 1."""
    image = input_format_of(network)
    channels = example.shape[1]
    return {
        "input_size": (*example.shape[1:],),
        "mean": standardization.mean if standardization else (0.0,) * channels,
        "std": standardization.std if standardization else (1.0,) * channels,
        "crop_pct": image.crop if isinstance(image, ImageInputs) else 1.0,
        "crop_mode": "center",
        "interpolation": "bicubic",
    }
