"""Compiling in place, and what is left out of it with torch before 2.13."""

import pytest
import torch
from torch import nn
from torch._inductor import config

from tasks.compiling import compile_network


@pytest.mark.parametrize(("version", "left_out"), [("2.11.0+cu130", True), ("2.12.1", True), ("2.13.0", False)])
def test_sums_that_lose_axes_are_left_out(version: str, left_out: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    with config.patch({"triton.mix_order_reduction": True}):
        compile_network(nn.Linear(2, 2))
        assert config.triton.mix_order_reduction is not left_out


def test_parameters_keep_their_names() -> None:
    network = nn.Sequential(nn.Linear(2, 2))
    before = [*network.state_dict()]
    compile_network(network)
    assert [*network.state_dict()] == before
