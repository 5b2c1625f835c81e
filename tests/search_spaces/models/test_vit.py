"""The ViT with topology resnet has timm's logits."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import pytest
import timm
import torch
from timm.layers import drop_path, trunc_normal_
from torch import Tensor, nn

from expect import raises
from grouped import grouped
from nas.costs.count import meta_device
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.vit import DropExamples, ViT, build_vit, count_vit, init_timm
from search_spaces.support.count import Count
from search_spaces.topologies.registry import TOPOLOGIES

Agree = Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]

SHAPES = {
    "vit_tiny_patch16_224": Architecture(depth=12, width=192, heads=3, head_dim=64, hidden=768),
    "vit_small_patch16_224": Architecture(depth=12, width=384, heads=6, head_dim=64, hidden=1536),
    "vit_base_patch16_224": Architecture(depth=12, width=768, heads=12, head_dim=64, hidden=3072),
}
IMAGE, PATCH, CLASSES = (3, 224, 224), 16, 1000


def copy_from_timm(model: ViT, reference: nn.Module) -> None:
    """Copy all of timm's weights into the model."""
    state = reference.state_dict()
    names = {
        "embedding.first": "cls_token",
        "embedding.positions": "pos_embed",
        "embedding.project.weight": "patch_embed.proj.weight",
        "embedding.project.bias": "patch_embed.proj.bias",
    }
    for kind in ("weight", "bias"):
        names |= {f"stack.norm.{kind}": f"norm.{kind}", f"head.{kind}": f"head.{kind}"}
        for block in range(len(reference.blocks)):
            attention, feed_forward = f"stack.layers.{2 * block}", f"stack.layers.{2 * block + 1}"
            names |= {
                f"{attention}.project.norm.{kind}": f"blocks.{block}.norm1.{kind}",
                f"{attention}.project.qkv.{kind}": f"blocks.{block}.attn.qkv.{kind}",
                f"{attention}.out.{kind}": f"blocks.{block}.attn.proj.{kind}",
                f"{feed_forward}.norm.{kind}": f"blocks.{block}.norm2.{kind}",
                f"{feed_forward}.up.{kind}": f"blocks.{block}.mlp.fc1.{kind}",
                f"{feed_forward}.down.{kind}": f"blocks.{block}.mlp.fc2.{kind}",
            }
    assert set(names.values()) == set(state)
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    model.load_state_dict({to: state[name].reshape(shapes[to]) for to, name in names.items()})


@pytest.mark.parametrize("name", SHAPES)
def test_the_resnet_vit_has_the_outputs_of_timm(name: str) -> None:
    torch.manual_seed(0)
    reference = timm.create_model(name, pretrained=False, depth=2).eval()
    model = build_vit(replace(SHAPES[name], depth=2), IMAGE, PATCH, CLASSES).eval()
    copy_from_timm(model, reference)
    images = torch.randn(1, *IMAGE)
    with torch.no_grad():
        torch.testing.assert_close(model(images), reference(images), rtol=0, atol=1e-5)


def test_the_resnet_vit_has_the_parameters_of_timm() -> None:
    name = "vit_base_patch16_224"
    with torch.device("meta"):
        copy_from_timm(build_vit(SHAPES[name], IMAGE, PATCH, CLASSES), timm.create_model(name, pretrained=False))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_the_resnet_vit_has_the_outputs_of_timm_at_full_depth(name: str) -> None:
    torch.manual_seed(0)
    reference = timm.create_model(name, pretrained=False).eval()
    model = build_vit(SHAPES[name], IMAGE, PATCH, CLASSES).eval()
    copy_from_timm(model, reference)
    images = torch.randn(2, *IMAGE)
    with torch.no_grad():
        torch.testing.assert_close(model(images), reference(images), rtol=0, atol=1e-5)


def test_weights_start_with_the_spread_of_timm() -> None:
    torch.manual_seed(0)
    model = build_vit(replace(SHAPES["vit_tiny_patch16_224"], depth=1), IMAGE, PATCH, CLASSES)
    reference = timm.create_model("vit_tiny_patch16_224", pretrained=False, depth=1)
    for mine, their in (
        (model.embedding.project.weight, reference.patch_embed.proj.weight),
        (model.embedding.positions, reference.pos_embed),
        (model.stack.layers[0].project.qkv.weight, reference.blocks[0].attn.qkv.weight),
        (model.stack.layers[1].down.weight, reference.blocks[0].mlp.fc2.weight),
        (model.head.weight, reference.head.weight),
    ):
        torch.testing.assert_close(mine.std(), their.std(), rtol=0.05, atol=1e-3)


def drop_rates(model: ViT) -> list[float]:
    """The drop path rate of each layer, from its hooks."""
    return [
        sum(hook.share for module in layer.modules() for hook in module._forward_hooks.values())
        for layer in model.stack.layers
    ]


def test_drop_path_grows_linearly_over_blocks_as_in_timm() -> None:
    architecture = Architecture(depth=3, width=8, heads=2, head_dim=4, hidden=8)
    model = build_vit(architecture, (1, 8, 8), 2, 10, drop_path=0.2)
    assert drop_rates(model) == pytest.approx([0, 0, 0.1, 0.1, 0.2, 0.2])
    names = [name for name, _ in build_vit(architecture, (1, 8, 8), 2, 10).named_parameters()]
    assert [name for name, _ in model.named_parameters()] == names


def test_drop_path_grows_by_block_whatever_the_layers_of_a_block() -> None:
    architecture = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=8, topology="resnet/depth-lstm")
    model = build_vit(architecture, (1, 8, 8), 2, 10, drop_path=0.3)
    assert drop_rates(model) == pytest.approx([0, 0, 0.1, 0.1, 0.2, 0.3])


@pytest.mark.parametrize("layer_from_the_end", [1, 2])
def test_a_dropped_example_gets_nothing_from_its_layer_in_training_alone(layer_from_the_end: int) -> None:
    torch.manual_seed(0)
    model = build_vit(Architecture(depth=2, width=8, heads=2, head_dim=4, hidden=8), (1, 8, 8), 2, 10, drop_path=0.5)
    layer = model.stack.layers[-layer_from_the_end]
    x = torch.randn(64, 17, 8)
    is_zero = (layer(x) == 0).all(dim=(1, 2))
    assert 10 < is_zero.sum() < 54
    assert not (layer.eval()(x) == 0).all(dim=(1, 2)).any()


def test_a_layer_whose_values_come_from_elsewhere_is_dropped_too() -> None:
    torch.manual_seed(0)
    shape = Architecture(depth=2, width=8, heads=2, head_dim=4, hidden=8, topology="svformer")
    model = build_vit(shape, (1, 8, 8), 2, 10, drop_path=0.5)
    tokens = model.stack.topology.open(torch.randn(64, 17, 8))
    for t in range(3):
        y, tokens = model.stack.output(t, tokens)
    assert 10 < (y == 0).all(dim=(1, 2)).sum() < 54


def test_a_vit_of_every_topology_may_have_heads_that_do_not_divide_the_width() -> None:
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                architecture = Architecture(depth=2, width=24, heads=5, head_dim=8, hidden=20, topology=topology)
                assert build_vit(architecture, (1, 8, 8), 2, 10)(torch.randn(3, 1, 8, 8)).shape == (3, 10)


SMALL = [
    (Architecture(depth=1, width=16, heads=1, head_dim=8, hidden=8), 8),
    (Architecture(depth=3, width=24, heads=5, head_dim=8, hidden=20), 32),
    (Architecture(depth=3, width=24, heads=5, head_dim=8, hidden=20), 128),
    (Architecture(depth=5, width=32, heads=2, head_dim=16, hidden=64), 32),
]
"""Shapes and image sizes."""


def check_counts(topologies: Iterable[str], shape: Architecture, side: int, agree: Agree) -> None:
    """Assert that counters and closed form agree on ViTs with these topologies."""
    image = (3, side, side)
    with grouped() as case:
        for topology in topologies:
            with case(f"{topology}, depth {shape.depth}, side {side}"):
                architecture = replace(shape, topology=topology)
                with meta_device():
                    model, example = build_vit(architecture, image, 2, 10), torch.zeros(1, *image)
                agree(model, (example,), count_vit(architecture, image, 2, 10))


def test_closed_form_and_both_counters_agree_on_a_vit(agree: Agree) -> None:
    check_counts(("deepnorm", "rmt", "depth-lstm", "svformer"), *SMALL[1], agree)
    for (shape, side), topology in zip(SMALL, ("resnet", "dca", "resnet", "dca"), strict=True):
        check_counts([topology], shape, side, agree)


@pytest.mark.slow
def test_closed_form_and_both_counters_agree_on_every_vit(agree: Agree) -> None:
    for shape, side in SMALL:
        check_counts(TOPOLOGIES.names(), shape, side, agree)


def test_a_vit_without_heads_is_refused() -> None:
    with raises("out-of-range", option="heads", value=0, least=1):
        build_vit(Architecture(depth=2, width=24, hidden=20), (1, 8, 8), 2, 10)


def test_weights_are_drawn_as_timm_draws_them() -> None:
    ours, timms = torch.empty(2, 64, 96), torch.empty(2, 64, 96)
    for draw, weight in ((init_timm, ours), (partial(trunc_normal_, std=0.02), timms)):
        torch.manual_seed(0)
        draw(weight)
    assert torch.equal(ours, timms)


def test_examples_are_dropped_as_timm_drops_them() -> None:
    x = torch.randn(64, 3, 5)
    layer = nn.Identity()
    torch.manual_seed(0)
    outputs = DropExamples(0.3)(layer, (), x)
    torch.manual_seed(0)
    assert torch.equal(outputs, drop_path(x, 0.3, training=True))
    assert (outputs == 0).all(dim=(1, 2)).any()
    assert not DropExamples(1.0)(layer, (), x).any()
    assert DropExamples(0.3)(layer.eval(), (), x) is x
