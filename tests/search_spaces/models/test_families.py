"""timm's models with other depths and heads: networks, counts and errors."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.families import MODEL_FAMILIES, base_of, build_family, heads_of
from search_spaces.spaces.catalog import get_space
from search_spaces.support.errors import Kind

IMAGE = (3, 224, 224)
# timm's model, its base as (depth, width, heads, hidden), another depth and heads, and their millions of parameters in
# the leaner paper (tables 4 and 5; TNT's and XCiT-M's printed numbers have wider heads).
MODELS = {
    "VisionTransformer": ("deit_base_patch16_224", (12, 768, 12, 3072), (7, 16), 86.6, None),
    "Xcit": ("xcit_large_24_p16_224", (24, 768, 16, 3072), (12, 24), 189.1, 103.8),
    "TNT": ("tnt_b_patch16_224", (12, 640, 10, 2560), (8, 16), 65.4, None),
    "DaVit": ("davit_large", (12, 768, 24, 3072), (8, 48), 196.8, 140.0),
    "VOLO": ("volo_d3_224", (36, 512, 16, 1536), (18, 32), 86.3, 47.5),
}


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip initialization on the meta device, which takes most of the time."""
    monkeypatch.setattr(timm.layers.weight_init, "_trunc_normal_", lambda tensor, *_: tensor)


FEW = {"DaVit": 5, "VOLO": 6}
"""Blocks, at least one per stage."""


def build(architecture: Architecture) -> nn.Module:
    with torch.device("meta"):
        return build_family(architecture, IMAGE, 1000)


def millions(network: nn.Module) -> float:
    return round(sum(parameter.numel() for parameter in network.parameters()) / 1e6, 1)


@pytest.mark.parametrize("family", MODEL_FAMILIES)
def test_a_model_is_its_own_base(family: str) -> None:
    name, (depth, width, heads, hidden), _, params, _ = MODELS[family]
    assert base_of(name) == Architecture(depth=depth, width=width, heads=heads, hidden=hidden, model=name)
    assert millions(build(base_of(name))) == params


@pytest.mark.parametrize("family", MODEL_FAMILIES)
def test_depth_and_heads_are_those_of_the_network(family: str) -> None:
    name, _, (depth, heads), _, params = MODELS[family]
    kind = MODEL_FAMILIES[family]
    network = build(replace(base_of(name), depth=depth, heads=heads))
    stages = kind.stages(network)
    longest = max(stages, key=len)
    assert sum(map(len, stages)) == depth
    assert {kind.layers(block)[0].num_heads for block in longest} == {heads}
    assert params is None or millions(network) == params


@pytest.mark.parametrize("family", MODEL_FAMILIES)
def test_both_counters_agree(family: str, agree: Callable[[nn.Module, tuple[Tensor, ...], None], None]) -> None:
    name, _, (_, heads), _, _ = MODELS[family]
    network = build(replace(base_of(name), depth=FEW.get(family, 2), heads=heads)).eval()
    image = torch.zeros(1, *IMAGE, device="meta")
    assert network(image).shape == (1, 1000)
    agree(network, (image,), None)


def test_a_model_of_stages_keeps_a_block_in_each() -> None:
    with torch.device("meta"):
        network = build_family(replace(base_of("davit_large"), depth=5), IMAGE, 10)
    assert [len(stage.blocks) for stage in network.stages] == [1, 1, 2, 1]


def test_possible_heads_divide_the_width_of_every_stage() -> None:
    assert heads_of("xcit_medium_24_p16_224") == (2, 4, 8, 16)
    assert heads_of("deit_base_patch16_224") == (3, 4, 6, 8, 12, 16, 24)
    assert heads_of("davit_large") == (8, 12, 16, 24, 32, 48)


def test_the_space_of_a_model_is_depth_against_heads() -> None:
    space = get_space("timm:xcit_medium_24_p16_224", Architecture(depth=1, width=1, hidden=1))
    assert space.base == base_of("xcit_medium_24_p16_224")
    assert {architecture.depth for architecture in space.architectures} == {6, 12, 18, 24, 36, 48}
    assert {architecture.heads for architecture in space.architectures} == {2, 4, 8, 16}
    assert all(architecture.head_dim == 0 for architecture in space.architectures)


@pytest.mark.parametrize(
    ("changes", "kind", "fields"),
    [
        ({"heads": 5}, "mismatch", {"option": "heads", "value": 5, "choices": (2, 4, 8, 16)}),
        ({"width": 256}, "mismatch", {"option": "width", "value": 256, "expected": 512}),
        ({"hidden": 1}, "mismatch", {"option": "hidden", "value": 1, "expected": 2048}),
        ({"model": "resnet50"}, "unsupported", {"option": "model", "value": "resnet50", "family": "ResNet"}),
        ({"model": "xcit_medum_24_p16_224"}, "unknown-name", {"option": "model", "nearest": "xcit_medium_24_p16_224"}),
        (
            {"model": "xcit_medium_24_p16_384"},
            "mismatch",
            {"option": "model", "expected": (3, 384, 384), "image": IMAGE},
        ),
    ],
)
def test_a_shape_that_a_model_cannot_have_is_refused(
    changes: dict[str, int | str], kind: Kind, fields: dict[str, Any]
) -> None:
    architecture = replace(base_of("xcit_medium_24_p16_224"), **changes)  # type: ignore[arg-type]  # mixed field types
    with raises(kind, **fields):
        build_family(architecture, IMAGE, 10)


def test_fewer_blocks_than_stages_are_refused() -> None:
    with raises("out-of-range", option="depth", value=3, stages=4):
        build_family(replace(base_of("davit_large"), depth=3), IMAGE, 10)
