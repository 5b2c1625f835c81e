"""Whole blocks wired by an inner topology."""

import pytest
import torch
from torch import Tensor

from expect import raises
from search_spaces.topologies.base import NoOptions, Site, StackSpec
from search_spaces.topologies.deepnorm import DeepNorm
from search_spaces.topologies.grn import DCA, GatedOptions
from search_spaces.topologies.per_block import BlockTopology, PerBlock
from search_spaces.topologies.rmt import RMT
from search_spaces.topologies.single_stream import ResNet

FIRST, NEXT = Site(("q", "k", "v"), 4, True), Site(("x",), 4, False)


def blocks(*sites: Site) -> PerBlock:
    return PerBlock(StackSpec(sites, 4, 0), BlockTopology(ResNet, NoOptions()))


def test_later_layers_read_the_block_input_and_all_outputs_of_the_block_so_far() -> None:
    topology = blocks(FIRST, NEXT, NEXT, FIRST)
    x, a, b, c = torch.randn(4, 2, 4).double()
    state = topology.open(x)
    for t, (expected, output) in enumerate([(x, a), (x + a, b), (x + (a + b), c), (x + (a + b + c), a)]):
        (read,), state = topology.read(t, state)
        assert torch.equal(read, expected)
        state = topology.write(t, state, output)


def test_block_output_is_the_sum_of_its_layers_without_the_block_input() -> None:
    topology = blocks(FIRST, NEXT)
    outputs: list[Tensor] = []
    topology.inner.write = lambda t, state, y: outputs.append(y)  # type: ignore[method-assign]
    x, a, b = torch.randn(3, 2, 4).double()
    state = topology.open(x)
    for t, output in enumerate((a, b)):
        _, state = topology.read(t, state)
        state = topology.write(t, state, output)
    assert len(outputs) == 1
    assert torch.equal(outputs[0], a + b)


def test_tensors_are_dropped_after_their_last_use() -> None:
    topology = blocks(FIRST, NEXT, FIRST)
    x, y = torch.randn(2, 2, 4)
    _, state = topology.read(0, topology.open(x))
    state = topology.write(0, state, y)
    assert state[1] is x
    _, state = topology.read(1, state)
    assert state[1] is None
    state = topology.write(1, state, y)
    assert state[1:] == (None, None)
    _, state = topology.read(2, state)
    assert state[1:] == (None, None)


def test_a_later_layer_with_several_ports_has_an_input_for_each() -> None:
    topology = PerBlock(StackSpec((FIRST, Site(("q", "k", "v"), 4, False)), 4, 4), BlockTopology(DCA, GatedOptions()))
    inputs, state = topology.read(0, topology.open(torch.randn(2, 3, 4)))
    inputs, _ = topology.read(1, topology.write(0, state, inputs[0]))
    assert len(inputs) == 3


def test_the_first_layer_must_open_a_block() -> None:
    with pytest.raises(ValueError) as info:  # noqa: PT011  # a programmer's mistake, which has no kind
        blocks(NEXT, FIRST)
    assert type(info.value) is ValueError


def test_a_topology_with_prenormed_inputs_is_refused_per_block() -> None:
    for topology, input_mode in ((RMT, "heads"), (DeepNorm, "normed")):
        with raises("bad-plugin", topology=topology.__name__, input_mode=input_mode):
            PerBlock(StackSpec((FIRST,), 4, 4), BlockTopology(topology, topology.Options()))


def test_the_inner_topology_chooses_the_move_to_recompute() -> None:
    topology = blocks(FIRST, NEXT, FIRST)
    topology.inner.recomputes = lambda t: ("read", "write")[t]  # type: ignore[method-assign]
    assert [topology.recomputes(t) for t in range(3)] == ["read", "read", "write"]
