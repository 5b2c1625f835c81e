"""Toy tables of recorded trainings: Rows with seeds, errors, test values, costs and curves."""

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from results.records import jsonl
from results.records.row import Costs, CurvePoint, Row
from results.stats.tabular_benchmark import TabularBenchmark
from search_spaces.architecture.architecture import Architecture
from toy_rows import a_row

STEPS = 100
DEPTHS, HEADS, TOPOLOGIES = (1, 2, 4, 8), (1, 2, 4), ("resnet", "dca(k=1)", "dca(k=2)")


def table_rows(seeds: Sequence[int] = (0, 1, 2), noise: float = 0.01) -> list[Row]:
    """Rows of 36 architectures with these seeds; larger ones are better and slower to learn."""
    return [
        training_row(
            Architecture(depth=depth, width=8, heads=heads, head_dim=4, hidden=16, topology=topology), seed, noise
        )
        for depth, heads, topology in product(DEPTHS, HEADS, TOPOLOGIES)
        for seed in seeds
    ]


def training_row(architecture: Architecture, seed: int, noise: float = 0.01) -> Row:
    """One Row, whose numbers follow from its architecture and seed."""
    draw, macs = random.Random(f"{architecture} {seed}"), 100 * architecture.depth * (architecture.heads + 1)
    gain = {"resnet": 0.0, "dca(k=1)": 0.05}.get(architecture.topology, 0.1)
    accuracy = 1 - 0.5 / (architecture.depth * architecture.heads) ** 0.5 + gain
    validation, test = (accuracy + noise * draw.gauss() for _ in range(2))
    curve: list[CurvePoint] = [
        {"step": step, "metrics": at(validation * (1 - 0.97 ** (step / architecture.depth)))}
        for step in range(10, 100, 10)
    ]
    return a_row(
        task="remembered", data="d1", preset="proxy", architecture=architecture, seed=seed, steps=STEPS,
        recipe={"lr": 0.01, "betas": [0.9, 0.99]}, directions={"accuracy": "max", "loss": "min"},
        metrics=at(validation), test=at(test), extra_metrics={"skipped": 1.0}, curve=tuple(curve),
        costs=Costs(params=7 * macs, macs=macs, flops=2 * macs, counter="made up", uncounted=("aten::mul",)),
    )  # fmt: skip


def at(accuracy: float) -> dict[str, float]:
    return {"accuracy": accuracy, "accuracy_se": 0.01, "loss": 2 - accuracy, "loss_se": 0.02}


def a_table(*rows: Row) -> TabularBenchmark:
    return TabularBenchmark("toys", rows or table_rows())


def write_table(folder: Path, rows: Sequence[Row] | None = None) -> str:
    """Write a table; return the name of its task."""
    file = folder / "toys.jsonl.gz"
    jsonl.write(table_rows() if rows is None else rows, file)
    return f"replay:{file}"
