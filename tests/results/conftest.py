"""Fixtures of rows and tables."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from results.records.row import Costs, CurvePoint, Row
from results.records.table import from_rows
from search_spaces.architecture.architecture import Architecture

_ROW = Row(
    task="digits",
    task_version=1,
    architecture=Architecture(depth=2, width=8, hidden=16),
    seed=0,
    preset="proxy",
    status="complete",
    data="d1",
)

TEXTS = ("", "loss", "é ∞ 漢字 🦊", "two\nlines", "\0\t\r", '"quoted" \\', "\u2028", "\udcff", "=1+1", "x" * 300, "-0")
INTEGERS = (0, 1, -1, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, 0.1 + 0.2, 1 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e-7, 1e22)
NAMES = (
    "loss",
    "loss_se",
    "accuracy",
    "params",
    "step",
    "steps",
    "test_loss",
    "metric_params",
    "Params",
    "é",
    "",
    "a b",
)
"""Names of metrics, some of which Row uses itself."""


@pytest.fixture
def make_row() -> Callable[..., Row]:
    """Make a row; arguments are fields of Row, its architecture or its costs."""

    def make(**changes: Any) -> Row:
        costs = {name: changes.pop(name) for name in Costs.__dataclass_fields__ if name in changes}
        shape = {name: changes.pop(name) for name in Architecture.__dataclass_fields__ if name in changes}
        architecture = replace(_ROW.architecture, **shape)
        return replace(_ROW, architecture=architecture, costs=Costs(**costs), **changes)

    return make


@pytest.fixture
def table(make_row: Callable[..., Row]) -> pa.Table:
    """Depths 1 to 6 with a topology, a million FLOPs and 0.1 accuracy per block; depth 4 has no accuracy."""
    topologies = ["resnet", "dca(k=2)", "dca(k=4)", "rmt(keys=64)", "grn-v3", "none"]
    return from_rows(
        make_row(
            depth=depth,
            topology=topology,
            flops=depth * 1_000_000,
            metrics={} if depth == 4 else {"accuracy": depth / 10},
        )
        for depth, topology in enumerate(topologies, start=1)
    )


@pytest.fixture
def random_rows() -> Callable[[int, int], list[Row]]:
    """Random valid Rows from a seed and a count."""

    def rows(seed: int, count: int) -> list[Row]:
        draw = random.Random(seed)
        return [_random_row(draw) for _ in range(count)]

    return rows


def _random_row(draw: random.Random) -> Row:
    """A Row with any value of each field's type; the architecture need not be valid."""
    return Row(
        task=draw.choice(TEXTS),
        task_version=draw.choice(INTEGERS),
        data=_maybe(draw, TEXTS),
        architecture=_architecture(draw),
        preset=draw.choice(TEXTS),
        recipe={draw.choice(TEXTS): _json(draw, 3) for _ in range(draw.randrange(4))},
        seed=draw.choice(INTEGERS),
        start=_maybe(draw, TEXTS),
        status=draw.choice(("complete", "pruned", "over-budget", "failed", "of another day")),
        error=_maybe(draw, TEXTS),
        space=_maybe(draw, TEXTS),
        steps=draw.choice(INTEGERS),
        directions={draw.choice(NAMES): draw.choice(("max", "min")) for _ in range(draw.randrange(3))},
        metrics=_numbers(draw),
        test=_numbers(draw),
        extra_metrics=_numbers(draw),
        speeds=_numbers(draw),
        costs=_costs(draw),
        profile={draw.choice(NAMES): draw.choice((*INTEGERS, *FLOATS, *TEXTS)) for _ in range(draw.randrange(3))},
        curve=tuple(_point(draw) for _ in range(draw.randrange(3))),
        provenance=_provenance(draw),
    )


def _maybe(draw: random.Random, values: Sequence[Any]) -> Any:
    return draw.choice((None, draw.choice(values)))


def _numbers(draw: random.Random) -> dict[str, float]:
    return {draw.choice(NAMES): draw.choice((*INTEGERS, *FLOATS)) for _ in range(draw.randrange(5))}


def _architecture(draw: random.Random) -> Architecture:
    numbers = {name: draw.choice(INTEGERS) for name in ("depth", "width", "hidden", "heads", "head_dim")}
    texts = {"topology": draw.choice((*TEXTS, "dca(k=2)", "gone(of=old)")), "model": draw.choice(TEXTS), "blocks": ""}
    return Architecture.from_record({**numbers, **texts})


def _costs(draw: random.Random) -> Costs:
    counts = {
        name: _maybe(draw, INTEGERS) for name in Costs.__dataclass_fields__ if name not in ("counter", "uncounted")
    }
    return Costs(**counts, counter=_maybe(draw, TEXTS), uncounted=tuple(draw.sample(TEXTS, draw.randrange(3))))


def _point(draw: random.Random) -> CurvePoint:
    point = CurvePoint(step=draw.choice(INTEGERS), metrics=_numbers(draw))
    if draw.random() < 0.5:
        point["seconds"] = draw.choice(FLOATS)
    return point


def _provenance(draw: random.Random) -> dict[str, Any]:
    provenance: dict[str, Any] = {name: _maybe(draw, TEXTS) for name in ("started", "commit", "command", "device")}
    provenance |= {"wall_s": _maybe(draw, FLOATS), "threads": _maybe(draw, INTEGERS), "anything": _json(draw, 4)}
    provenance["versions"] = {draw.choice(TEXTS): draw.choice(TEXTS) for _ in range(draw.randrange(3))}
    return {name: provenance[name] for name in draw.sample(sorted(provenance), draw.randrange(len(provenance) + 1))}


def _json(draw: random.Random, levels: int) -> Any:
    kind = draw.randrange(6 if levels else 4)
    if kind == 4:
        return [_json(draw, levels - 1) for _ in range(draw.randrange(3))]
    if kind == 5:
        return {draw.choice(TEXTS): _json(draw, levels - 1) for _ in range(draw.randrange(3))}
    return draw.choice(((None, True, False), INTEGERS, FLOATS, TEXTS)[kind])
