"""Steps saved by early stopping and its loss of hypervolume, on recorded curves of real trainings and live.

`steps_saved` is the number of optimizer steps of a search without rungs, divided by that of the same search with rungs.
Sampler and number of trainings are equal. `hypervolume` is that of the second search's validation front as a share of
the first one's, both by test metrics. Figures are the minimum over samplers of medians over seeds. Peers are other
rungs. Live searches train networks on digit scans, once each way.
"""

import statistics
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import nas
from benchmarks import curves
from benchmarks.form import Figure, main
from nas.report.study import Study
from results.records import jsonl
from results.records.row import Direction
from results.stats.hypervolume import hypervolume
from results.stats.pareto import front

SAMPLERS = ("surrogate", "nsga2", "random")
RUNGS: Mapping[str, nas.Rungs] = {
    "": nas.Rungs(1, 0.05),
    "at a tenth": nas.Rungs(1, 0.1),
    "at a tenth and at three": nas.Rungs(2, 0.1),
}
"""Name -> rungs; "" is the figure, the others are its peers."""

TRIALS, FEWER = 96, 64
"""Trainings of a search, of the 100 recorded ones, and of a smaller search."""


def run_search(folder: Path, arguments: Mapping[str, Any], rungs: nas.Rungs) -> Study:
    """Run a search in its own store."""
    storage = f"sqlite:///{folder}/{rungs.number}-{rungs.min_fraction}.db"
    return nas.search(
        **arguments,
        rungs=rungs,
        reeval_fraction=0.0,
        save_models="none",
        resources=nas.Resources(1),
        storage=storage,
        study="s",
    )


def steps(study: Study) -> int:
    """Return all steps that a search trained; the Row of a promoted training has all of its steps."""
    return sum(row.steps for row in study.rows())


def hypervolume_of(study: Study, objectives: Mapping[str, Direction], reference: tuple[float, float]) -> float:
    """Return the hypervolume of the validation front by test metrics and FLOPs, which are minimized."""
    (metric, way), _ = objectives.items()
    sign = -1.0 if way == "max" else 1.0
    rows = front(study.table, objectives)
    values = [sign * value for value in rows[f"test_{metric}"].to_pylist()]
    return hypervolume(np.array([values, rows["flops"].to_pylist()], dtype=float).T, np.array(reference))


def compare(arguments: Mapping[str, Any], rungs: Mapping[str, nas.Rungs]) -> dict[str, tuple[float, float]]:
    """Return for each setting of rungs how many times fewer steps it takes, and its share of the hypervolume."""
    with TemporaryDirectory() as folder:
        full_study = run_search(Path(folder), arguments, nas.Rungs())
        studies = {name: run_search(Path(folder), arguments, way) for name, way in rungs.items()}
    objectives = full_study.objectives
    metric, way = next(iter(objectives.items()))
    values = [row.test[metric] for row in full_study.rows()]
    reference = (
        -min(values) if way == "max" else max(values),
        float(max(row.costs.flops or 0 for row in full_study.rows())),
    )
    best = hypervolume_of(full_study, objectives, reference)
    return {
        name: (steps(full_study) / steps(study), hypervolume_of(study, objectives, reference) / best)
        for name, study in studies.items()
    }


def compare_on_replay(
    sampler: str, seeds: range, trials: int, rungs: Mapping[str, nas.Rungs]
) -> dict[str, tuple[float, float]]:
    """Return the medians over seeds of `compare` on recorded curves."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "curves.jsonl"
        jsonl.write(curves.rows_of_curves(), table)
        arguments = {"task": f"replay:{table}", "objectives": "accuracy,flops", "sampler": sampler, "trials": trials}
        of_seeds = [compare({**arguments, "seed": seed}, rungs) for seed in seeds]
    return {
        name: (
            statistics.median(result[name][0] for result in of_seeds),
            statistics.median(result[name][1] for result in of_seeds),
        )
        for name in rungs
    }


def figures(quick: bool) -> dict[str, Figure]:
    """Measure three seeds of each sampler, and live; if quick, one seed of random search and nothing live."""
    by_sampler = dict[str, Mapping[str, tuple[float, float]]]()
    for name in SAMPLERS[-1 if quick else 0 :]:
        by_sampler[name] = compare_on_replay(name, range(1 if quick else 3), 20 if quick else TRIALS, RUNGS)
        if not quick:
            fewer = compare_on_replay(name, range(3), FEWER, {"": RUNGS[""]})
            by_sampler[name] = {**by_sampler[name], f"{FEWER} trainings": fewer[""]}
    least = {
        way: (
            min(result[way][0] for result in by_sampler.values()),
            min(result[way][1] for result in by_sampler.values()),
        )
        for way in next(iter(by_sampler.values()))
    }
    every = pair("", least, 2.5, 0.99)
    for name, ways in by_sampler.items():
        every |= pair(f"_{name}", ways)
    return every | ({} if quick else live())


def live() -> dict[str, Figure]:
    """Train 24 networks of digits-vit."""
    arguments = {"task": "digits-vit", "preset": "smoke", "settings": "reports=8", "trials": 24, "sampler": "random"}
    return pair("_live", compare({**arguments, "objectives": "loss,flops"}, RUNGS), 2.5, 0.99)


def pair(
    name: str,
    ways: Mapping[str, tuple[float, float]],
    speed_target: float | None = None,
    share_target: float | None = None,
) -> dict[str, Figure]:
    """Return both figures, with other rungs as peers."""
    (times, share), others = ways[""], {way: both for way, both in ways.items() if way}
    of_times, of_share = ({way: both[number] for way, both in others.items()} for number in (0, 1))
    return {
        f"steps_saved{name}": Figure(times, "times", "higher", speed_target, of_times),
        f"hypervolume{name}": Figure(share, "share", "higher", share_target, of_share),
    }


if __name__ == "__main__":
    main("early_stopping", figures)
