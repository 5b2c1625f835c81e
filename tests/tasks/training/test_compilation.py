"""Compilation in place, and its options."""

from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.topology_step import STYLE
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.transformer import build_transformer
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology
from tasks.training.compilation import MIXED_SUMS, compile_network


def test_mixed_sums_are_disabled_if_torch_has_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: calls.append(how))
    for names in ([MIXED_SUMS], []):
        monkeypatch.setattr("torch._inductor.list_options", lambda names=names: names)
        compile_network(nn.Linear(2, 2))
    assert calls == [{"fullgraph": False, "options": calls} for calls in ({MIXED_SUMS: False}, None)]


def test_compiler_options_of_topologies_apply_to_single_blocks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, Any]] = []
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: options.append(how["options"]))
    for topology in ("resnet", "ancre", "resnet[0:2]+ancre[2:4]"):
        shape = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=8, topology=topology)
        compile_network(build_transformer(shape, STYLE, lambda block: SoftmaxAttention(causal=True)))
    assert options == [{MIXED_SUMS: False}, *2 * [{MIXED_SUMS: False, "max_fusion_size": 16}]]


def test_torch_has_all_compiler_options_in_use() -> None:
    options = {MIXED_SUMS}.union(*(resolve_topology(name)[0].compile_options for name in TOPOLOGIES.names()))
    assert options <= set(torch._inductor.list_options())


@pytest.mark.slow
def test_compiling_keeps_outputs_and_parameter_names() -> None:
    torch.compiler.reset()
    network, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(3, 2)
    before, expected = [*network.state_dict()], network(x)
    compile_network(network, fullgraph=True)
    torch.testing.assert_close(network(x), expected)
    assert [*network.state_dict()] == before
