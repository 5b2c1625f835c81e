"""Recorded curves of real trainings: validation metrics of 100 small vision transformers on digit-ranks-vit.

They are every member of a space, trained once with seed 0 (two cores of an AMD EPYC, torch 2.15.0), by

    nas search digit-ranks-vit --set reports=20 --space depth-heads --axis depth=1,2,3,4,6 --axis heads=1,2,4,8 \
        --axis "topology=resnet,grn-v3,dca(k=2),ancre(temperature=0.01),hyper(streams=2)" --trials 100 \
        --sampler random --reeval-fraction 0 --save-models none --study curves --storage sqlite:///curves.db
    python -m benchmarks.curves sqlite:///curves.db curves benchmarks/data/digit-ranks-vit.csv.gz

To write them as a table for searches and tournaments (`nas tournament replay:digit-ranks-curves.jsonl`):

    python -m benchmarks.curves digit-ranks-curves.jsonl
"""

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import nas
from nas.costs.count import budget_counts
from results.records import jsonl
from results.records.row import Costs, CurvePoint, Row
from search_spaces.spaces.parsing import parse_architecture
from tasks.recipes.settings import override, plain_values
from tasks.vision.digit_ranks import DigitRanksViT

FILE = Path(__file__).parent / "data" / "digit-ranks-vit.csv.gz"
METRICS = ("accuracy", "accuracy_se", "loss", "loss_se")
TEST = ("test_accuracy", "test_loss")

Curve = Sequence[tuple[int, Mapping[str, float]]]
"""Steps and validation metrics; the last point is the end, and also has test metrics."""


@cache
def curves(file: Path = FILE) -> Mapping[str, Curve]:
    """Return architecture as text -> its curve."""
    points = defaultdict[str, list[tuple[int, Mapping[str, float]]]](list)
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            values = {name: float(line[name]) for name in (*METRICS, *TEST) if line[name]}
            architecture = parse_architecture(line["architecture"], DigitRanksViT.base)  # its text may be shorter now
            points[str(architecture)].append((int(line["step"]), values))
    return dict(points)


def write(rows: Sequence[Row], file: Path) -> None:
    """Write the curves of complete Rows, to seven digits."""
    with gzip.GzipFile(file, "wb", mtime=0) as archive:
        archive.write(f"architecture,step,{','.join((*METRICS, *TEST))}\n".encode())
        for row in sorted(rows, key=lambda row: str(row.architecture)):
            test = {f"test_{name}": value for name, value in row.test.items()}
            points = [(point["step"], point["metrics"]) for point in row.curve]
            for step, metrics in (*points, (row.steps, {**row.metrics, **test})):
                values = ",".join(f"{metrics[name]:.7g}" if name in metrics else "" for name in (*METRICS, *TEST))
                archive.write(f'"{row.architecture}",{step},{values}\n'.encode())


def rows_of_curves(file: Path = FILE) -> list[Row]:
    """Return the trainings as Rows for replay, the base architecture first, as in the search.

    The file lacks standard errors on test, seconds and provenance. Costs are by closed form.
    """
    task, curves_by_text = DigitRanksViT(), curves(file)
    recipe = plain_values(override(task.presets["proxy"], {"reports": 20}))
    directions = {metric.name: metric.direction for metric in task.metrics}
    rows = []
    for text, (*points_before, (last, at_end)) in sorted(
        curves_by_text.items(), key=lambda one: one[0] != str(task.base)
    ):
        architecture = parse_architecture(text, task.base)
        points: list[CurvePoint] = [{"step": step, "metrics": metrics} for step, metrics in points_before]
        rows.append(
            Row(
                task=task.name, task_version=task.version, preset="proxy", recipe=recipe, seed=0, status="complete",
                architecture=architecture, costs=Costs(**budget_counts(task, architecture)), directions=directions,
                steps=last, curve=tuple(points), metrics={name: at_end[name] for name in METRICS},
                test={name.removeprefix("test_"): at_end[name] for name in TEST},
            )
        )  # fmt: skip
    return rows


if __name__ == "__main__":
    match sys.argv[1:]:
        case [target]:
            jsonl.write(rows_of_curves(), target)
        case [storage, study, target]:
            write([row for row in nas.load(study, storage=storage).rows() if row.status == "complete"], Path(target))
