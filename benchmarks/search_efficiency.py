"""Results of a budgeted search in 100 trials, relative to plain Optuna: the share of useful trials, and the front.

A trial is useful if its architecture is new and within the budget. The front is that of loss against flops. Its
hypervolume is a share of the true front's, which is known: the space is enumerated and the loss synthetic
(landscapes.py). The reference point is the worst loss and the worst flops within the budget. Figures without a suffix
are those of the `interacting` loss. The others have no target; they detect samplers that fit one loss only. All values
are medians over seeds.

`_per_block` is an implicit space (per_block.py) with two bounds. Its true front is unknown, so a hypervolume is a share
of everything that these searches found. The target is the value of NSGA-II restricted to the budget.

Peers: `nas-...` are the other samplers of this project. `optuna-...` is plain Optuna with the budget as a constraint;
trials outside the budget and repeated ones count. `reject` draws at random until an architecture is new and within the
budget.
"""

import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import optuna
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import StudyDirection
from optuna.trial import TrialState

from benchmarks import per_block
from benchmarks.form import Figure, main
from benchmarks.landscapes import LOSSES, Landscape, landscapes
from benchmarks.per_block import LargeLandscape
from nas.analysis.simulation import Outcome, simulate
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.registry import DEFAULT
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.axis_names import option_of
from search_spaces.spaces.space import Candidate

BUDGETS = {"band": "21M<=params<=23M", "cap": "params<=18500k"}  # 3 % and 30 % of the space
TRIALS = 100
DIRECTIONS = (StudyDirection.MINIMIZE, StudyDirection.MINIMIZE)
TARGETS = {"band": 0.99, "cap": 0.98}

Proposals = Sequence[Architecture | None]
"""The architecture of each trial; None if the network cannot be built."""

AnyLandscape = Landscape | LargeLandscape

Search = Callable[..., Proposals]
"""(landscape, seed, number of trials, by default TRIALS) -> proposals."""


def ours(inner: str) -> Search:
    """Return this project's search with one of its samplers."""

    def run(landscape: AnyLandscape, seed: int, trials: int | None = None) -> Proposals:
        sampler = BudgetSampler(landscape.feasible, inner, seed)

        def evaluate(candidate: Candidate, before: int) -> Outcome:
            return Outcome(landscape.measure(candidate.architecture, seed))

        candidates = simulate(sampler, ("min", "min"), evaluate, trials or TRIALS)
        return [candidate.architecture for candidate in candidates]

    return run


def plain(make: Callable[[int], BaseSampler]) -> Search:
    """Return Optuna's search as in its documentation: suggest each field, give the budget as a constraint."""

    def run(landscape: AnyLandscape, seed: int, trials: int | None = None) -> Proposals:
        study = optuna.create_study(directions=DIRECTIONS, sampler=make(seed))
        inside, proposals = landscape.inside, list[Architecture | None]()
        for _ in range(trials or TRIALS):
            trial = study.ask()
            architecture = suggest_architecture(trial, landscape)
            proposals.append(architecture)
            if architecture is None:
                study.tell(trial, state=TrialState.FAIL)
            else:
                trial.set_constraint("budget", 0.0 if architecture in inside else 1.0)
                study.tell(trial, landscape.measure(architecture, seed))
        return proposals

    return run


def suggest_architecture(trial: optuna.Trial, landscape: AnyLandscape) -> Architecture | None:
    """Return Optuna's suggestion of an architecture, None if it cannot be built."""
    space = landscape.feasible.space
    axes = space.axes
    point: dict[str, Any] = {
        name: trial.suggest_int(name, int(values[0]), int(values[-1]))
        if name in ("depth", "heads")
        else trial.suggest_categorical(name, values)
        for name, values in axes.items()
        if option_of(name) is None
    }
    point |= {name: trial.suggest_categorical(name, axes[name]) for name in space.options(point)}
    candidate = space.candidate(point)
    return candidate.architecture if candidate in space else None


def reject(landscape: AnyLandscape, seed: int, trials: int | None = None) -> Proposals:
    """Draw random values for every axis until they are new and within the budget."""
    space, inside, draw = landscape.feasible.space, landscape.inside, random.Random(seed)
    proposals = list[Architecture]()
    while len(proposals) < min(trials or TRIALS, landscape.feasible.number):
        point = {name: draw.choice(values) for name, values in space.axes.items()}
        options = {name: point[name] for name in space.options(point)}
        architecture = space.candidate({name: v for name, v in point.items() if "." not in name} | options).architecture
        if architecture in inside and architecture not in proposals:
            proposals.append(architecture)
    return proposals


PEERS: dict[str, Search] = {
    "nas-tpe": ours("tpe"),
    "nas-nsga2": ours("nsga2"),
    "nas-random": ours("random"),
    "optuna-tpe": plain(lambda seed: TPESampler(seed=seed)),
    "optuna-nsga2": plain(lambda seed: NSGAIISampler(seed=seed)),
    "optuna-random": plain(lambda seed: RandomSampler(seed)),
    "reject": reject,
}


def figures(quick: bool) -> dict[str, Figure]:
    """Measure seven seeds; if quick, three, and beyond the first loss only the fastest peer."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seeds = range(3 if quick else 7)
    share, front = dict[str, Figure](), dict[str, Figure]()
    for (loss, budget), landscape in landscapes(BUDGETS).items():
        first = loss == next(iter(LOSSES))
        runs = {"": ours(DEFAULT), **PEERS}
        if quick and not first:
            runs = {"": runs[""], "reject": reject}
        proposals_by_name = {name: [run(landscape, seed) for seed in seeds] for name, run in runs.items()}
        useful, volume = (
            {
                name: statistics.median(value_of(within(landscape, proposals)) for proposals in each)
                for name, each in proposals_by_name.items()
            }
            for value_of in (lambda architectures: len(architectures) / TRIALS, landscape.hypervolume)
        )
        if first:
            share[f"useful_share_{budget}"] = Figure(useful.pop(""), "share", "higher", 1.0, useful)
        name = f"hypervolume_{budget}" if first else f"hypervolume_{budget}_{loss}"
        front[name] = Figure(volume.pop(""), "share", "higher", TARGETS[budget] if first else None, volume)
    return share | front | per_block_figures(quick)


def per_block_figures(quick: bool) -> dict[str, Figure]:
    """Measure the implicit space; hypervolumes are shares of everything that these searches found."""
    landscape, count_s = per_block.landscape(), per_block.seconds_to_count()
    names = ("nas-nsga2", "nas-random", "optuna-nsga2", "reject")
    runs = {"": ours(DEFAULT), **{name: PEERS[name] for name in names}}
    trials, useful, volume = TRIALS // (5 if quick else 1), dict[str, list[float]](), dict[str, list[float]]()
    for seed in range(1 if quick else 5):
        architectures = {name: within(landscape, run(landscape, seed, trials)) for name, run in runs.items()}
        for name, share in zip(runs, per_block.shares(architectures.values()), strict=True):
            useful.setdefault(name, []).append(len(architectures[name]) / trials)
            volume.setdefault(name, []).append(share)
    useful_share, front = (
        {name: statistics.median(values) for name, values in each.items()} for each in (useful, volume)
    )
    return {
        "count_1e36_members_cpu_s": Figure(count_s, "s", "lower", 1.0),
        "useful_share_per_block": Figure(useful_share.pop(""), "share", "higher", 1.0, useful_share),
        "hypervolume_per_block": Figure(front.pop(""), "share", "higher", front["nas-nsga2"], front),
    }


def within(landscape: AnyLandscape, proposals: Proposals) -> set[Architecture]:
    """Return the distinct architectures within the budget."""
    return {architecture for architecture in proposals if architecture is not None and architecture in landscape.inside}


if __name__ == "__main__":
    main("search_efficiency", figures)
