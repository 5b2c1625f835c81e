"""Parameters with weight decay."""

import re
from collections.abc import Callable

from torch import nn

from expect import warns
from grouped import grouped
from search_spaces.layers.stack import Stack
from search_spaces.topologies.decay import split_by_decay
from search_spaces.topologies.registry import TOPOLOGIES

Build = Callable[..., Stack]

MAPS = {
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
"""Topologies with linear maps, which have weight decay like layers'; other parameters have none."""

MORE_CASES = ("laurel(reach=2)", "value-residual(learned=true)")
"""Options that add mixing weights."""


def names_with_decay(model: nn.Module, *without: str) -> set[str]:
    ids = {id(parameter) for parameter in split_by_decay(model, without)[0]}
    return {name for name, parameter in model.named_parameters() if id(parameter) in ids}


def test_maps_of_every_topology_are_decayed_and_its_mixing_weights_are_not(transformer: Build) -> None:
    with grouped() as case:
        for topology in (*TOPOLOGIES.names(), *MORE_CASES):
            with case(topology):
                stack = transformer(topology)
                maps = {f"{name}.weight" for name in MAPS.get(topology.partition("(")[0], ())}
                names = [name for name, _ in stack.topology.named_parameters()]
                expected = {f"topology.{name}" for name in names if re.sub(r"\.\d+\.", ".", name) in maps}
                assert {name for name in names_with_decay(stack) if name.startswith("topology.")} == expected
                assert {re.sub(r"\.\d+\.", ".", name) for name in names} >= maps
                halves = [id(parameter) for half in split_by_decay(stack) for parameter in half]
                assert sorted(halves) == sorted(id(parameter) for parameter in stack.parameters())


def test_matrices_of_layers_are_decayed_and_their_biases_and_gains_are_not(transformer: Build) -> None:
    stack = transformer("resnet", depth=1)
    matrices = {name for name, parameter in stack.named_parameters() if parameter.ndim == 2}
    assert names_with_decay(stack) == matrices
    assert len(matrices) < len(list(stack.parameters()))


def test_without_decay_exempts_named_parameters_and_modules(transformer: Build) -> None:
    stack = transformer("resnet", depth=1)
    assert names_with_decay(stack) - names_with_decay(stack, "qkv", "1", "nowhere") == {
        "layers.0.project.qkv.weight", "layers.1.up.weight", "layers.1.down.weight",
    }  # fmt: skip


def test_without_decay_takes_whole_names_and_warns_where_none_is_found(transformer: Build) -> None:
    stack = transformer("resnet", depth=1)
    with warns("skipped", option="without_decay", value=("layer", "qk")):
        assert names_with_decay(stack, "layer", "qk") == names_with_decay(stack)
