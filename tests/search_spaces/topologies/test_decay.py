"""What weight decay leaves alone."""

import re
from collections.abc import Callable

import pytest
from torch import nn

from search_spaces.errors import Notice
from search_spaces.layers.stack import Stack
from search_spaces.topologies.decay import split_by_decay
from search_spaces.topologies.registry import TOPOLOGIES

Build = Callable[..., Stack]

DECAYED = {
    "aggregation": {"nodes.up", "nodes.down"},
    "depth-lstm": {"steps.gates", "steps.up", "steps.down"},
    "frac": {"connections.dynamic.project"},
    "highway": {"gates.gate", "gates.value"},
    "hyper": {"connections.dynamic.project"},
    "laurel": {"maps.up", "maps.down"},
    "mhc": {"connections.map"},
    "muddformer": {"weights.first", "weights.second"},
    "rmt": {"embed.keys", "loads.keys", "stores.keys", "unembed.keys"},
}
"""Topologies with linear maps, which are decayed as layers' are; all else is mixing weights, gains and biases."""

OTHERS = ("laurel(reach=2)", "value-residual(learned=true)")
"""Whose mixing weights their defaults do not have."""


def decayed(model: nn.Module, *without: str) -> set[str]:
    kept = {id(parameter) for parameter in split_by_decay(model, without)[0]}
    return {name for name, parameter in model.named_parameters() if id(parameter) in kept}


@pytest.mark.parametrize("topology", TOPOLOGIES.names())
def test_every_parameter_is_in_one_half(topology: str, transformer: Build) -> None:
    stack = transformer(topology)
    halves = [id(parameter) for half in split_by_decay(stack) for parameter in half]
    assert sorted(halves) == sorted(id(parameter) for parameter in stack.parameters())


@pytest.mark.parametrize("topology", [*TOPOLOGIES.names(), *OTHERS])
def test_maps_of_a_topology_are_decayed_and_its_mixing_weights_are_not(topology: str, transformer: Build) -> None:
    stack = transformer(topology)
    maps = {f"{name}.weight" for name in DECAYED.get(topology.partition("(")[0], ())}
    own = [name for name, _ in stack.topology.named_parameters()]
    expected = {f"topology.{name}" for name in own if re.sub(r"\.\d+\.", ".", name) in maps}
    assert {name for name in decayed(stack) if name.startswith("topology.")} == expected
    assert {re.sub(r"\.\d+\.", ".", name) for name in own} >= maps


def test_layers_matrices_are_decayed_and_their_biases_and_gains_are_not(transformer: Build) -> None:
    stack = transformer("resnet", depth=1)
    matrices = {name for name, parameter in stack.named_parameters() if parameter.ndim == 2}
    assert decayed(stack) == matrices
    assert len(matrices) < len(list(stack.parameters()))


def test_what_is_named_is_left_alone_with_all_that_is_in_it(transformer: Build) -> None:
    stack = transformer("resnet", depth=1)
    assert decayed(stack) - decayed(stack, "qkv", "1", "nowhere") == {
        "layers.0.project.qkv.weight", "layers.1.up.weight", "layers.1.down.weight",
    }  # fmt: skip


def test_a_name_is_whole(transformer: Build) -> None:
    stack = transformer("resnet", depth=1)
    with pytest.warns(Notice, match="changes nothing: this network has none of layer, qk"):
        assert decayed(stack, "layer", "qk") == decayed(stack)
