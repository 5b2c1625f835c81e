"""Compiling in place, and what is left out of it."""

from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.topology_step import STYLE
from search_spaces.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.transformer import build_transformer
from search_spaces.topologies.registry import TOPOLOGIES, load
from tasks.compiling import MIXED_SUMS, compile_network


@pytest.mark.parametrize("known", [True, False])
def test_mixed_sums_are_left_out_where_torch_has_them(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr("torch._inductor.list_options", lambda: [MIXED_SUMS] if known else [])
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: asked.append(how))
    compile_network(nn.Linear(2, 2))
    assert asked == [{"fullgraph": False, "options": {MIXED_SUMS: False} if known else None}]


def test_a_topology_says_how_it_is_compiled_also_in_some_blocks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: asked.append(how["options"]))
    for topology in ("resnet", "ancre", "resnet[0:2]+ancre[2:4]"):
        shape = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=8, topology=topology)
        compile_network(build_transformer(shape, STYLE, lambda block: SoftmaxAttention(causal=True)))
    assert asked == [{MIXED_SUMS: False}, *2 * [{MIXED_SUMS: False, "max_fusion_size": 16}]]


def test_this_torch_has_what_is_asked_of_its_compiler() -> None:
    asked = {MIXED_SUMS}.union(*(load(name)[0].compiled_with for name in TOPOLOGIES.names()))
    assert asked <= set(torch._inductor.list_options())


def test_it_computes_the_same_and_parameters_keep_their_names() -> None:
    torch.compiler.reset()
    network, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(3, 2)
    before, expected = [*network.state_dict()], network(x)
    compile_network(network, fullgraph=True)
    torch.testing.assert_close(network(x), expected)
    assert [*network.state_dict()] == before
