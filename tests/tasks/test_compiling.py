"""Compiling in place, and what is left out of it."""

from typing import Any

import pytest
import torch
from torch import nn

from tasks.compiling import MIXED_SUMS, compile_network


@pytest.mark.parametrize("known", [True, False])
def test_mixed_sums_are_left_out_where_torch_has_them(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr("torch._inductor.list_options", lambda: [MIXED_SUMS] if known else [])
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: asked.append(how))
    compile_network(nn.Linear(2, 2))
    assert asked == [{"fullgraph": False, "options": {MIXED_SUMS: False} if known else None}]


def test_this_torch_has_them() -> None:
    assert MIXED_SUMS in torch._inductor.list_options()


def test_it_computes_the_same_and_parameters_keep_their_names() -> None:
    torch.compiler.reset()
    network, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(3, 2)
    before, expected = [*network.state_dict()], network(x)
    compile_network(network, fullgraph=True)
    torch.testing.assert_close(network(x), expected)
    assert [*network.state_dict()] == before
