"""Rows for tests of `nas results`: five architectures with two seeds each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from results.records.costs import Costs
from results.records.row import Row
from toy_rows import LITTLE, a_row

Ask = Callable[..., list[dict[str, Any]]]


SHAPES = [(1, "resnet", 0.5), (2, "resnet", 0.7), (3, "resnet", 0.75), (1, "rmt", 0.6), (2, "rmt", 0.4)]


def rows(**changes: Any) -> list[Row]:
    return [
        a_row(
            architecture=replace(LITTLE, depth=depth, topology=topology),
            seed=seed,
            costs=Costs(params=1000 * depth, macs=10_000 * depth, flops=20_000 * depth),
            metrics={"accuracy": accuracy + 0.01 * seed, "accuracy_se": 0.001},
            **changes,
        )
        for depth, topology, accuracy in SHAPES
        for seed in (0, 1)
    ]
