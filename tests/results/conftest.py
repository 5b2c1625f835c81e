"""Rows to make tables of."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from results.row import Costs, Row
from results.table import from_rows
from search_spaces.architecture import Architecture

_ROW = Row(
    task="digits",
    task_version=1,
    architecture=Architecture(depth=2, width=8, hidden=16),
    seed=0,
    preset="proxy",
    status="complete",
    data="d1",
)


@pytest.fixture
def make_row() -> Callable[..., Row]:
    """A row; arguments are fields of Row, or of its architecture or costs."""

    def make(**changes: Any) -> Row:
        costs = {name: changes.pop(name) for name in Costs.__dataclass_fields__ if name in changes}
        shape = {name: changes.pop(name) for name in Architecture.__dataclass_fields__ if name in changes}
        architecture = replace(_ROW.architecture, **shape)
        return replace(_ROW, architecture=architecture, costs=Costs(**costs), **changes)

    return make


@pytest.fixture
def table(make_row: Callable[..., Row]) -> pa.Table:
    """Depths 1 to 6, a topology each, flops a million a block, accuracy a tenth a block and missing for depth 4."""
    topologies = ["resnet", "dca(k=2)", "dca(k=4)", "rmt(keys=64)", "grn-v3", "none"]
    return from_rows(
        make_row(
            depth=depth,
            topology=topology,
            flops=depth * 1_000_000,
            validation={} if depth == 4 else {"accuracy": depth / 10},
        )
        for depth, topology in enumerate(topologies, start=1)
    )
