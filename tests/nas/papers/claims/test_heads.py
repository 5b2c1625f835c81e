"""Condition numbers of attention by heads: which layer is measured, and which pairs are compared."""

import math
from typing import Any

import pytest
from torch import nn

from nas.papers.claims import heads
from nas.papers.claims.heads import HeadConditioning
from search_spaces.layers.attention import Attention


def test_claims_subtract_condition_numbers_in_decades(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake_measure(network: nn.Module, inputs: Any) -> dict[str, float]:
        (layer,) = (module for module in network.modules() if isinstance(module, Attention))
        head_dim = layer.project.qkv.out_features / 3 / layer.heads
        return {"condition_number": 10.0 ** (10 * layer.heads + math.log2(head_dim)), "condition_heads": 10.0}

    monkeypatch.setattr(heads, "conditioning_metrics", fake_measure)
    values = HeadConditioning(seeds=2).values()
    assert values["1 x 8 over 2 x 8"] == pytest.approx([-10, -10])
    assert values["8 x 8 over 16 x 8"] == pytest.approx([-80, -80])
    assert values["4 x 8 over 4 x 16"] == pytest.approx([-1, -1])
    assert values["1 x 64 over 8 x 8"] == pytest.approx([10 + 6 - 80 - 3] * 2)
    for claim in HeadConditioning.claims:
        few, many = (tuple(map(int, shape.split(" x "))) for shape in claim.name.split(" over "))
        assert claim.statement.endswith(f": {many[0]} of {many[1]} than {few[0]} of {few[1]}")
        assert few < many
