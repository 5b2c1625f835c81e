"""Recorded curves of real trainings: validation metrics of 100 small vision transformers on digit-ranks-vit.

They are every member of a space, trained once with seed 0 (two cores of an AMD EPYC, torch 2.15.0), by

    nas search digit-ranks-vit --set reports=20 --space depth-heads --axis depth=1,2,3,4,6 --axis heads=1,2,4,8 \
        --axis "topology=resnet,grn-v3,dca(k=2),ancre(temperature=0.01),hyper(streams=2)" --trials 100 \
        --sampler random --confirm 0 --keep none --study curves --storage sqlite:///curves.db
    python -m benchmarks.curves sqlite:///curves.db curves benchmarks/data/digit-ranks-vit.csv.gz
"""

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import nas
from results.row import Row
from tasks.base import Fitted
from tasks.digit_ranks import DigitRanksViT
from tasks.run import STOP, Run

FILE = Path(__file__).parent / "data" / "digit-ranks-vit.csv.gz"
METRICS = ("accuracy", "accuracy_se", "loss", "loss_se")
TEST = ("test_accuracy", "test_loss")

AXES = (
    "depth=1,2,3,4,6",
    "heads=1,2,4,8",
    "topology=resnet,grn-v3,dca(k=2),ancre(temperature=0.01),hyper(streams=2)",
)

Curve = Sequence[tuple[int, Mapping[str, float]]]
"""Steps and validation metrics; the last are those of the end, and with them those on the test split."""


@cache
def curves(file: Path = FILE) -> Mapping[str, Curve]:
    """Architectures as text -> their curves."""
    found = defaultdict[str, list[tuple[int, Mapping[str, float]]]](list)
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            values = {name: float(line[name]) for name in (*METRICS, *TEST) if line[name]}
            found[line["architecture"]].append((int(line["step"]), values))
    return dict(found)


def write(rows: Sequence[Row], file: Path) -> None:
    """Write the curves of complete Rows, to seven digits."""
    with gzip.GzipFile(file, "wb", mtime=0) as packed:
        packed.write(f"architecture,step,{','.join((*METRICS, *TEST))}\n".encode())
        for row in sorted(rows, key=lambda row: str(row.architecture)):
            test = {f"test_{name}": value for name, value in row.test.items()}
            points = [(point["step"], point["metrics"]) for point in row.curve]
            for step, metrics in (*points, (row.steps, {**row.metrics, **test})):
                values = ",".join(f"{metrics[name]:.7g}" if name in metrics else "" for name in (*METRICS, *TEST))
                packed.write(f'"{row.architecture}",{step},{values}\n'.encode())


class Recorded(DigitRanksViT):
    """digit-ranks-vit, whose trainings are looked up."""

    name = "recorded-digit-ranks"

    def fit(self, run: Run) -> Fitted:
        """Say the curve as far as is wanted."""
        *reported, (last, at_end) = curves()[str(run.architecture)]
        for step, metrics in reported:
            if run.report(step, metrics) is STOP:
                return Fitted(steps=step, metrics=metrics)
        metrics = {name: at_end[name] for name in METRICS}
        return Fitted(steps=last, metrics=metrics, test={name: at_end[f"test_{name}"] for name in ("accuracy", "loss")})


if __name__ == "__main__":
    storage, study, target = sys.argv[1:]
    write([row for row in nas.load(study, storage=storage).rows() if row.status == "complete"], Path(target))
