"""Cost of a query from a cold start: on a store of 10,000 Rows, and on Parquet files of up to a million.

On the store, CPU seconds: `results` prints five rows of a condition, `front` finds the front and draws all points. The
peer loads every row with `json.loads`, flattens them with `pandas.json_normalize` and filters.

On Parquet files of 107 columns: wall-clock time, CPU seconds and peak memory of a process that prints five rows of a
condition. The peer reads the whole file with `pandas.read_parquet` and filters.
"""

import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import nas
from benchmarks.form import Figure, main
from nas.store.schema import ROWS
from nas.store.store import Store
from results.records.row import Row

STARTS = 5
COLUMNS = 107

PANDAS = """
import json, sqlite3, sys, pandas
rows = [json.loads(text) for (text,) in sqlite3.connect(sys.argv[1]).execute("SELECT row FROM nas_rows")]
frame = pandas.json_normalize(rows)
print(frame[frame["costs.flops"] < 2e8].head())
"""

PANDAS_PARQUET = """
import sys, pandas
frame = pandas.read_parquet(sys.argv[1])
print(frame[frame["flops"] < 2e8].head())
"""

PROGRAM = """
import resource, subprocess, sys, time
began = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""
"""A small parent process: a child's peak memory includes that of the process that forked it."""


@dataclass(frozen=True)
class Cost:
    """The cost of a process: wall-clock seconds, CPU seconds, and peak memory in bytes."""

    wall: float
    cpu: float
    memory: float


def fill(folder: Path, size: int) -> str:
    """Create a store of `size` Rows, varied from a real one with curve, recipe and provenance; return its URL."""
    url = f"sqlite:///{folder}/studies.db"
    row = nas.evaluate("digits-vit", preset="smoke", storage=url)
    draw = random.Random(0)
    with Store(url, make=True).engine.begin() as connection:
        for seed in range(size):
            copy = vary(row, draw, seed)
            line = {"study": "big", "identity": copy.identity(), "status": copy.status, "row": copy.to_json()}
            connection.execute(ROWS.insert().values(**line))
    return url


def vary(row: Row, draw: random.Random, seed: int) -> Row:
    """Return a varied copy of a Row."""
    shape = {"depth": draw.randint(1, 40), "hidden": draw.randint(1, 400)}
    architecture = replace(row.architecture, **shape, topology=draw.choice(["resnet", "dca(k=2)", "rmt"]))
    costs = replace(row.costs, flops=draw.randrange(10**6, 10**9))
    metrics = {**row.metrics, "accuracy": draw.random()}
    return replace(row, architecture=architecture, seed=seed, metrics=metrics, costs=costs)


def write_parquet(path: Path, size: int) -> None:
    """Write a table of `size` rows: names, shapes, costs, and further columns up to COLUMNS."""
    draw = np.random.default_rng(0)
    words = np.array(["resnet", "dca(k=2)", "rmt"])
    columns = {
        "task": pa.array(["cifar10-vit"] * size),
        "status": pa.array(["complete"] * size),
        "identity": pa.array([f"{number:016x}" for number in range(size)]),
        "key": pa.array([f"{number:010x}" for number in draw.integers(2**39, size=size)]),
        "topology": pa.array(words[draw.integers(len(words), size=size)]),
        **{name: pa.array(draw.integers(10**6, 10**9, size=size)) for name in ("seed", "depth", "params", "flops")},
    }
    columns |= {f"found_{number}": pa.array(draw.random(size)) for number in range(COLUMNS - len(columns))}
    parquet.write_table(pa.table(columns), path, compression="zstd")


def cost(words: Sequence[str], folder: Path) -> Cost:
    """Return the medians over STARTS runs of a command."""
    costs = []
    for _ in range(STARTS):
        process = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words], cwd=folder, check=True, capture_output=True, text=True
        )
        costs.append(map(float, process.stdout.split()))
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def of_parquet(folder: Path, size: int, name: str, most: float | None, memory: float | None) -> dict[str, Figure]:
    """Measure the query of a Parquet file; `most` seconds and `memory` megabytes are targets."""
    path = folder / f"{name}.parquet"
    write_parquet(path, size)
    words = ["results", "--from", str(path), "--where", "flops < 2e8", "--limit", "5"]
    own = cost([sys.executable, "-m", "nas", *words], folder)
    peer = cost([sys.executable, "-c", PANDAS_PARQUET, str(path)], folder)
    return {
        f"parquet_{name}_wall_s": Figure(own.wall, "s", "lower", most, {"pandas": peer.wall}),
        f"parquet_{name}_cpu_s": Figure(own.cpu, "s", "lower", most, {"pandas": peer.cpu}),
        f"parquet_{name}_peak_mb": Figure(own.memory / 1e6, "MB", "lower", memory, {"pandas": peer.memory / 1e6}),
    }


def figures(quick: bool) -> dict[str, Figure]:
    """Measure 10,000 Rows, and Parquet of 100,000 and of a million; if quick, 1,000 and 10,000."""
    size, name = (1000, "1k") if quick else (10_000, "10k")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        url = fill(folder, size)
        own = [sys.executable, "-m", "nas"]
        words = ["--study", "big", "--storage", url]
        results = cost([*own, "results", *words, "--where", "flops < 2e8", "--limit", "5"], folder).cpu
        front = cost([*own, "front", *words, "--plot", "front.png"], folder).cpu
        pandas = cost([sys.executable, "-c", PANDAS, str(folder / "studies.db")], folder).cpu
        files = (
            of_parquet(folder, 10_000, "10k", None, None)
            if quick
            else (of_parquet(folder, 100_000, "100k", 0.5, 200) | of_parquet(folder, 1_000_000, "1m", 2, None))
        )
    aim = None if quick else 1.5
    return {
        f"store_{name}_results_cpu_s": Figure(results, "s", "lower", aim, {"pandas": pandas}),
        f"store_{name}_front_cpu_s": Figure(front, "s", "lower", aim),
        **files,
    }


if __name__ == "__main__":
    main("results_query", figures)
