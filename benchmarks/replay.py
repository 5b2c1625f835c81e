"""Speed of searching recorded trainings, and of one look-up.

`simulated_trials_per_minute` is the wall-clock speed of random search in memory: propose, look up, tell. The table is
synthetic, with 300 architectures, three seeds each and curves of 20 reports. Peers are the other samplers; a GP's
proposals take time, whatever a training takes. `look_up_us` is `TabularBenchmark.evaluate` alone.
"""

import random
import time
from collections.abc import Sequence
from itertools import product

from benchmarks.form import Figure, main
from nas.analysis.simulation import replay
from nas.budget.bounds import Feasible
from results.records.row import Costs, CurvePoint, Direction, Row
from results.stats.tabular_benchmark import TabularBenchmark
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.enumerated import enumerated_space

SEEDS, REPORTS, TRIALS = 3, 20, 100
TOPOLOGIES = ("resnet", *(f"dca(k={k})" for k in (1, 2, 4)), *(f"ancre(temperature={t})" for t in (0.01, 0.1)))
WAYS: dict[str, Direction] = {"accuracy": "max", "flops": "min"}


def made_up() -> TabularBenchmark:
    """Return a table in which larger networks are better, with noise."""
    shapes = list(product((1, 2, 3, 4, 6), (1, 2, 3, 4, 8), (8, 16), TOPOLOGIES))
    return TabularBenchmark("made-up", [row(*shape, seed) for shape in shapes for seed in range(SEEDS)])


def row(depth: int, heads: int, head_dim: int, topology: str, seed: int) -> Row:
    """Return one training."""
    architecture = Architecture(depth=depth, width=48, heads=heads, head_dim=head_dim, hidden=96, topology=topology)
    macs = 1000 * depth * (heads * head_dim + 96)
    end = 1 - 20 / macs**0.5 + 0.01 * random.Random(f"{architecture} {seed}").gauss()
    curve: list[CurvePoint] = [
        {"step": 36 * part, "metrics": {"accuracy": end * part / REPORTS, "accuracy_se": 0.01}}
        for part in range(1, REPORTS)
    ]
    at_end = {"accuracy": end, "accuracy_se": 0.01}
    return Row(
        task="made-up", task_version=1, preset="proxy", architecture=architecture, seed=seed, status="complete",
        directions={"accuracy": "max"}, metrics=at_end, test=at_end, steps=36 * REPORTS, curve=tuple(curve),
        costs=Costs(params=macs, macs=macs, flops=2 * macs),
    )  # fmt: skip


def per_minute(table: TabularBenchmark, sampler: str, searches: int) -> float:
    """Return the trials per minute of successive searches with different seeds."""
    space = enumerated_space(table.name, table.architectures)
    members = Feasible(space, tuple(space))
    began = time.perf_counter()
    trials = sum(len(replay(table, members, WAYS, sampler, seed, TRIALS)) for seed in range(searches))
    return 60 * trials / (time.perf_counter() - began)


def look_up_us(table: TabularBenchmark, keys: Sequence[tuple[Architecture, int]]) -> float:
    """Return the microseconds of a look-up."""
    began = time.perf_counter()
    for architecture, seed in keys:
        table.evaluate(architecture, seed)
    return 1e6 * (time.perf_counter() - began) / len(keys)


def figures(quick: bool) -> dict[str, Figure]:
    """Measure ten random searches; if quick, three, and only the fastest peer."""
    table = made_up()
    peers = {name: per_minute(table, name, 1) for name in (("nsga2",) if quick else ("nsga2", "tpe", "surrogate"))}
    trials = per_minute(table, "random", 3 if quick else 10)
    keys = [(row.architecture, row.seed) for row in table.rows] * 10
    return {
        "simulated_trials_per_minute": Figure(trials, "a minute", "higher", 10_000, peers),
        "look_up_us": Figure(look_up_us(table, keys), "us", "lower", 100),
    }


if __name__ == "__main__":
    main("replay", figures)
