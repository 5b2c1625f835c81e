"""Compiling in place, and what is left out of it with torch before 2.13."""

from typing import Any

import pytest
import torch
from torch import nn

from tasks.compiling import compile_network


@pytest.mark.parametrize(("version", "left_out"), [("2.11.0+cu130", True), ("2.12.1", True), ("2.13.0", False)])
def test_sums_that_lose_axes_are_left_out(version: str, left_out: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: asked.append(how))
    compile_network(nn.Linear(2, 2))
    options = {"triton.mix_order_reduction": False} if left_out else None
    assert asked == [{"fullgraph": False, "options": options}]


@pytest.mark.parametrize("version", ["2.12.1", torch.__version__])
def test_it_computes_the_same_and_parameters_keep_their_names(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.compiler.reset()
    network, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(3, 2)
    before, expected = [*network.state_dict()], network(x)
    monkeypatch.setattr(torch, "__version__", version)
    compile_network(network, fullgraph=True)
    torch.testing.assert_close(network(x), expected)
    assert [*network.state_dict()] == before
