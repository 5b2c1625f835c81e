"""CPU seconds from a cold start to an answer from a store of 10,000 Rows, beside pandas on the same JSON.

`results` prints five rows of a condition, `front` finds the front and draws all points. The peer is what one would
write without them: every row through `json.loads`, flattened by `pandas.json_normalize`, and the condition asked of it.
"""

import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import nas
from benchmarks.form import Figure, main
from nas.storage.store import _ROWS, Store
from results.row import Row

STARTS = 5

PANDAS = """
import json, sqlite3, sys, pandas
rows = [json.loads(text) for (text,) in sqlite3.connect(sys.argv[1]).execute("SELECT row FROM nas_rows")]
frame = pandas.json_normalize(rows)
print(frame[frame["costs.flops"] < 2e8].head())
"""


def fill(folder: Path, size: int) -> str:
    """A store of so many Rows like one that was measured: with its curve, recipe and provenance."""
    url = f"sqlite:///{folder}/studies.db"
    row = nas.evaluate("digits-vit", preset="smoke", storage=url)
    draw = random.Random(0)
    with Store(url, make=True).engine.begin() as connection:
        for seed in range(size):
            one = varied(row, draw, seed)
            line = {"study": "big", "identity": one.identity(), "status": one.status, "row": one.to_json()}
            connection.execute(_ROWS.insert().values(**line))
    return url


def varied(row: Row, draw: random.Random, seed: int) -> Row:
    """Another Row of the same kind."""
    shape = {"depth": draw.randint(1, 40), "hidden": draw.randint(1, 400)}
    architecture = replace(row.architecture, **shape, topology=draw.choice(["resnet", "dca(k=2)", "rmt"]))
    costs = replace(row.costs, flops=draw.randrange(10**6, 10**9))
    metrics = {**row.metrics, "accuracy": draw.random()}
    return replace(row, architecture=architecture, seed=seed, metrics=metrics, costs=costs)


def seconds(words: Sequence[str], folder: Path) -> float:
    """The median of the CPU seconds of some starts of a command."""
    found = []
    for _ in range(STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(found)


def figures(quick: bool) -> dict[str, Figure]:
    """10,000 Rows; 1,000 where it is to be quick."""
    size, name = (1000, "1k") if quick else (10_000, "10k")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        url = fill(folder, size)
        own = [sys.executable, "-m", "nas"]
        asked = ["--study", "big", "--storage", url]
        results = seconds([*own, "results", *asked, "--where", "flops < 2e8", "--limit", "5"], folder)
        front = seconds([*own, "front", *asked, "--plot", "front.png"], folder)
        pandas = seconds([sys.executable, "-c", PANDAS, str(folder / "studies.db")], folder)
    aim = None if quick else 1.5
    return {
        f"store_{name}_results_cpu_s": Figure(results, "s", "lower", aim, {"pandas": pandas}),
        f"store_{name}_front_cpu_s": Figure(front, "s", "lower", aim),
    }


if __name__ == "__main__":
    main("results_query", figures)
