"""What weight decay leaves alone."""

from collections.abc import Callable

import pytest
from torch import nn

from search_spaces.errors import Notice
from search_spaces.layers.stack import Stack
from search_spaces.topologies.decay import split_by_decay
from search_spaces.topologies.registry import TOPOLOGIES

Build = Callable[..., Stack]


def decayed(model: nn.Module, *without: str) -> set[str]:
    kept = {id(parameter) for parameter in split_by_decay(model, without)[0]}
    return {name for name, parameter in model.named_parameters() if id(parameter) in kept}


@pytest.mark.parametrize("topology", TOPOLOGIES.names())
def test_every_parameter_is_in_one_half(topology: str, transformer: Build) -> None:
    stack = transformer(topology)
    halves = [id(parameter) for half in split_by_decay(stack) for parameter in half]
    assert sorted(halves) == sorted(id(parameter) for parameter in stack.parameters())


@pytest.mark.parametrize("topology", ["grn-v1", "grn-v2", "grn-v3", "dca", "ancre", "denseformer"])
def test_mixing_weights_are_left_alone_whatever_their_shape(topology: str, transformer: Build) -> None:
    assert not [name for name in decayed(transformer(topology)) if name.startswith("topology.")]


def test_layers_matrices_are_decayed_and_their_biases_and_gains_are_not(transformer: Build) -> None:
    stack = transformer("resnet", depth=1)
    matrices = {name for name, parameter in stack.named_parameters() if parameter.ndim == 2}
    assert decayed(stack) == matrices
    assert len(matrices) < len(list(stack.parameters()))


def test_keys_of_a_residual_matrix_are_decayed_and_its_gains_are_not(transformer: Build) -> None:
    stack = transformer("rmt")
    wiring = {name for name, _ in stack.named_parameters() if name.startswith("topology.")}
    assert {name for name in decayed(stack) if name in wiring} == {
        name for name in wiring if name.endswith("keys.weight")
    }


def test_of_hyper_connections_the_dynamic_map_alone_is_decayed(transformer: Build) -> None:
    wiring = {name for name in decayed(transformer("hyper", depth=1)) if name.startswith("topology.")}
    assert wiring == {f"topology.connections.{t}.dynamic.project.weight" for t in range(2)}


def test_what_is_named_is_left_alone_with_all_that_is_in_it(transformer: Build) -> None:
    stack = transformer("resnet", depth=1)
    assert decayed(stack) - decayed(stack, "qkv", "1", "nowhere") == {
        "layers.0.project.qkv.weight", "layers.1.up.weight", "layers.1.down.weight",
    }  # fmt: skip


def test_a_name_is_whole(transformer: Build) -> None:
    stack = transformer("resnet", depth=1)
    with pytest.warns(Notice, match="changes nothing: this network has none of layer, qk"):
        assert decayed(stack, "layer", "qk") == decayed(stack)
