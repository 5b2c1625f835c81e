"""What early stopping saves and what it costs, on recorded curves of real trainings and live.

`steps_saved` is the optimiser's steps of a search whose trainings all go to their ends, over those of the same search
that holds them at rungs: as many trainings of the same sampler. `hypervolume` is that of what the second one trained
to the end, as a share of the first one's, by values at the end; the least over samplers, of medians over seeds. Beside
them stand the same for other rungs. Live, networks are trained on scans, once each way.
"""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nas
from benchmarks import curves
from benchmarks.form import Figure, main
from nas.study import Study
from results.row import Row

RECORDED = f"{curves.__file__}:Recorded"
SAMPLERS = ("surrogate", "nsga2", "random")
RUNGS: Mapping[str, Mapping[str, Any]] = {
    "": {"rungs": 2, "grace": 0.1},
    "one rung": {"rungs": 1, "grace": 0.25},
    "three rungs": {"rungs": 3, "grace": 0.05},
}
"""What is measured, beside which others are."""


def found(folder: Path, asked: Mapping[str, Any], rungs: Mapping[str, Any]) -> Study:
    """A search in a store of its own."""
    storage = f"sqlite:///{folder}/{'-'.join(map(str, rungs.values()))}.db"
    return nas.search(**asked, **rungs, confirm=0.0, keep="none", workers=1, storage=storage, study="s")


def steps(study: Study) -> int:
    """All that a search trained: a Row of a training that went on has all of its steps."""
    return sum(row.steps for row in study.rows())


def hypervolume(rows: Sequence[Row], reference: tuple[float, float]) -> float:
    """Of accuracy, to be large, and FLOPs, to be small, of what was trained to the end."""
    worst, left = reference
    total = 0.0
    ended = [(row.metrics["accuracy"], float(row.costs.flops or 0)) for row in rows if row.status == "complete"]
    for accuracy, flops in sorted(ended, reverse=True):
        if flops < left:
            total += (accuracy - worst) * (left - flops)
            left = flops
    return total


def compared(asked: Mapping[str, Any]) -> Mapping[str, tuple[float, float]]:
    """For each way of holding trainings: how many times fewer steps, and the share of the hypervolume."""
    with TemporaryDirectory() as folder:
        whole = found(Path(folder), asked, {"rungs": 0})
        held = {name: found(Path(folder), asked, rungs) for name, rungs in RUNGS.items()}
    complete = [row for row in whole.rows() if row.status == "complete"]
    reference = min(row.metrics["accuracy"] for row in complete), float(max(row.costs.flops or 0 for row in complete))
    best = hypervolume(complete, reference)
    return {
        name: (steps(whole) / steps(study), hypervolume(study.rows(), reference) / best) for name, study in held.items()
    }


def figures(quick: bool) -> dict[str, Figure]:
    """Five seeds of each sampler, and live; where it is to be quick, one seed of one sampler and nothing live."""
    every: dict[str, list[tuple[float, float]]] = {name: [] for name in RUNGS}
    by_sampler = dict[str, Figure]()
    for sampler in SAMPLERS[-1:] if quick else SAMPLERS:
        asked = {
            "task": RECORDED, "space": "depth-heads", "axis": curves.AXES, "objectives": "accuracy,flops",
            "trials": 20 if quick else 64, "sampler": sampler,
        }  # fmt: skip
        of_seeds = [compared({**asked, "seed": seed}) for seed in range(1 if quick else 5)]
        medians = {name: _medians([one[name] for one in of_seeds]) for name in RUNGS}
        for name, pair in medians.items():
            every[name].append(pair)
        for number, (word, unit) in enumerate((("steps_saved", "times"), ("hypervolume", "share"))):
            peers = {name: pair[number] for name, pair in medians.items() if name}
            by_sampler[f"{word}_{sampler}"] = Figure(medians[""][number], unit, "higher", None, peers)
    least = {name: tuple(map(min, zip(*pairs, strict=True))) for name, pairs in every.items()}
    saved, kept = ({name: pair[number] for name, pair in least.items()} for number in (0, 1))
    total = {
        "steps_saved": Figure(saved.pop(""), "times", "higher", 2.5, saved),
        "hypervolume": Figure(kept.pop(""), "share", "higher", 0.99, kept),
    }
    return total | by_sampler | ({} if quick else live())


def live() -> dict[str, Figure]:
    """Networks that are trained: 24 of digits-vit."""
    asked = {"task": "digits-vit", "preset": "smoke", "settings": "reports=8", "trials": 24, "seed": 0}
    pairs = compared({**asked, "objectives": "loss,flops"})
    (saved, kept), others = pairs[""], {name: pair for name, pair in pairs.items() if name}
    return {
        "steps_saved_live": Figure(saved, "times", "higher", 2.5, {name: pair[0] for name, pair in others.items()}),
        "hypervolume_live": Figure(kept, "share", "higher", 0.99, {name: pair[1] for name, pair in others.items()}),
    }


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    saved, kept = zip(*pairs, strict=True)
    return statistics.median(saved), statistics.median(kept)


if __name__ == "__main__":
    main("early_stopping", figures)
