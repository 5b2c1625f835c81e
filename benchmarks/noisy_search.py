"""What a search reports that is true where trainings are noisy: 100 of them, on landscapes whose true front is known.

A hypervolume is that of the true values of what is reported, as a share of the true front's: the figure is the least
over the landscapes, of medians over seeds, and each landscape has one as well. Noise is a multiple of what audits of
this project's tasks measured (NOISE_RATIO). `calibration_error` is how far, over all trained architectures, the
chance to be on their front is from the share that are, by fifths of the chance: the greatest over the landscapes.
`fresh_bias` is how far above the truth means of fresh seeds are that stand on reported fronts, in deviations of the
noise: below 0 they are too good, for they had a part in being there.

Peers train nothing twice. `nas-nsga2` and `nas-tpe` are Optuna's samplers made true to the budget, `single` is this
search without another seed for anything: they report what nothing else that was measured beats. `botorch` reports what
nothing beats by its model's expectations; it takes so long that it has two seeds.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from multiprocessing import get_context

import numpy as np
import optuna
import torch

from benchmarks.form import Figure, main
from benchmarks.landscapes import LOSSES, Landscape, interacting, landscapes
from benchmarks.search_efficiency import BUDGETS
from nas.analysis.simulation import Outcome, simulate
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.encoding import Coordinates
from nas.samplers.proposer import SearchState
from nas.samplers.registry import DEFAULT
from nas.samplers.surrogate_sampler import Surrogate
from results.records import table
from results.stats.architecture_summary import summarize
from results.stats.pareto import non_dominated
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Candidate
from search_spaces.support.count import Count

TRIALS, CONFIRMING = 100, 25

NOISE_RATIO = 0.5
"""The deviation of one seed's noise (seed and examples) over that of architectures, by the best metric of each task in
docs/audits.md: stdlib-lm 0.05, digit-ranks-vit 0.1, digits-vit and lra-listops 0.5, goal-point-maze 1.0."""

NOISES = {"without": 0.0, "half": 0.5, "twice": 2.0}

FIFTHS = 5


@dataclass(frozen=True)
class Training:
    """One training of a search: what was trained, and the loss and FLOPs that came out."""

    architecture: Architecture
    loss: float
    flops: float


@dataclass(frozen=True)
class SearchReport:
    """What a search says in the end.

    Attributes:
        front: The architectures that it reports.
        chances: Every architecture trained -> its chance to be on the front of these; empty where nothing is said.
        fresh: What is reported with fresh seeds -> the mean of the losses that they had.
        proposal_s: Seconds of CPU of telling an outcome and proposing the next, the median of the last twenty.
    """

    front: set[Architecture]
    chances: Mapping[Architecture, float]
    fresh: Mapping[Architecture, float]
    proposal_s: float


Search = Callable[[Landscape, float, int], SearchReport]
"""(landscape, deviation of noise, seed) -> what is reported."""


def ours(landscape: Landscape, noise: float, seed: int) -> SearchReport:
    """This project's default search, which knows what FLOPs are, and confirms at its end."""
    observations, proposal_s = trainings(landscape, DEFAULT, noise, seed, CONFIRMING)
    lines = [
        {
            **asdict(one.architecture),
            "key": one.architecture.key,
            "identity": str(number),
            "loss": one.loss,
            "flops": int(one.flops),
        }
        for number, one in enumerate(observations)
    ]
    confirming = {str(number) for number in range(TRIALS - CONFIRMING, TRIALS)}
    summaries = summarize(table.from_records(lines), {"loss": "min", "flops": "min"}, confirming)
    by_key = {one.architecture.key: one.architecture for one in observations}
    by_architecture = [(by_key[str(one.record["key"])], one) for one in summaries]
    front = {architecture for architecture, one in by_architecture if one.on_front}
    fresh = {
        architecture: float(one.record["loss"])
        for architecture, one in by_architecture
        if one.on_front and one.is_held_out
    }
    return SearchReport(front, {architecture: one.p_front for architecture, one in by_architecture}, fresh, proposal_s)


def observed_front(inner: str) -> Search:
    """A search that trains nothing twice, and believes what it measured."""

    def run(landscape: Landscape, noise: float, seed: int) -> SearchReport:
        observations, proposal_s = trainings(landscape, inner, noise, seed, 0)
        stands = non_dominated(np.array([(one.loss, one.flops) for one in observations]))
        return SearchReport(
            {one.architecture for one, on in zip(observations, stands, strict=True) if on}, {}, {}, proposal_s
        )

    return run


def botorch(landscape: Landscape, noise: float, seed: int) -> SearchReport:
    """BoTorch's qLogNEHVI over the same feasible set, with FLOPs known, which reports what its model expects."""
    from benchmarks.botorch_search import NoisyHypervolume, posterior_means

    torch.set_num_threads(1)
    inner = f"{NoisyHypervolume.__module__}:{NoisyHypervolume.__name__}"
    observations, proposal_s = trainings(landscape, inner, noise, seed, 0)
    number = {candidate.architecture: index for index, candidate in enumerate(landscape.feasible)}
    at = np.array([number[one.architecture] for one in observations], dtype=np.intp)
    losses = posterior_means(Coordinates.of(landscape.feasible), at, np.array([one.loss for one in observations]))
    stands = non_dominated(np.stack([losses, [one.flops for one in observations]], axis=1))
    return SearchReport(
        {one.architecture for one, on in zip(observations, stands, strict=True) if on}, {}, {}, proposal_s
    )


class Once(Surrogate):
    """This project's rule, where nothing may have another seed."""

    def propose(self, state: SearchState) -> int:
        """Choose what is new."""
        return super().propose(replace(state, repeatable=state.new[:0]))


def trainings(
    landscape: Landscape, inner: str, noise: float, seed: int, confirming: int
) -> tuple[list[Training], float]:
    """The trainings of a search, the last of which confirm, and the seconds of telling one and proposing the next."""
    costs = {architecture: (np.nan, float(landscape.flops[architecture])) for architecture in landscape.inside}
    sampler = BudgetSampler(landscape.feasible, inner, seed, costs.__getitem__)
    draw, done, seconds, last_end = np.random.default_rng(seed), list[Training](), list[float](), time.process_time()

    def train(candidate: Candidate, before: int) -> Outcome:
        nonlocal last_end
        seconds.append(time.process_time() - last_end)
        architecture = candidate.architecture
        loss = landscape.loss[architecture] + noise * float(draw.standard_normal())
        done.append(Training(architecture, loss, costs[architecture][1]))
        last_end = time.process_time()
        return Outcome((loss, done[-1].flops))

    simulate(sampler, ("min", "min"), train, TRIALS, confirming)
    return done, statistics.median(seconds[-20:])


def calibration_error(landscape: Landscape, every: Sequence[SearchReport]) -> float | None:
    """How far chances are from shares, the mean over architectures; None where no chances are said."""
    probabilities, true = list[float](), list[bool]()
    for report in every:
        names = list(report.chances)
        values = np.array([(landscape.loss[name], landscape.flops[name]) for name in names])
        probabilities += [report.chances[name] for name in names]
        true += non_dominated(values).tolist()
    if not np.isfinite(probabilities).all():  # without noise seeds are alike, and nothing says that there is none
        return None
    chances, share = np.array(probabilities), np.array(true, dtype=float)
    fifth = np.minimum((chances * FIFTHS).astype(int), FIFTHS - 1)
    off = [abs(chances[fifth == one].sum() - share[fifth == one].sum()) for one in range(FIFTHS)]
    return float(sum(off) / len(chances))


def loss_with_floor(architecture: Architecture, count: Count) -> float:
    """A loss below which nothing comes, as a task that is too easy has."""
    return max(interacting(architecture, count), 1.5)


@dataclass(frozen=True)
class Case:
    """What came of a landscape at a noise.

    Attributes:
        shares: Search -> the hypervolume of what it reports, the median over seeds; "" is this project's.
        error: The calibration error, None where no chances are said.
        off: How far above the truth each reported mean of fresh seeds is, in deviations of the noise.
        proposals_s: Each search's seconds of CPU of a proposal.
    """

    shares: dict[str, float]
    error: float | None
    off: list[float]
    proposals_s: list[float]


@cache
def every_landscape(quick: bool) -> dict[tuple[str, str], Landscape]:
    """(name of a loss, name of a budget) -> the landscape; few where it is to be quick."""
    losses = {name: (loss, 0.0) for name, (loss, noise) in LOSSES.items() if not noise} | {
        "floored": (loss_with_floor, 0.0)
    }
    return landscapes(BUDGETS, {"interacting": (interacting, 0.0)} if quick else losses)


def run_case(case: tuple[str, tuple[str, str], bool]) -> Case:
    """What came of (the noise's name, the landscape's, whether it is to be quick): in a process of its own, maybe."""
    word, name, quick = case
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    landscape, seeds = every_landscape(quick)[name], range(1 if quick else 5)
    noise = NOISES[word] * NOISE_RATIO * float(np.std([landscape.loss[one] for one in landscape.inside]))
    inner = {"single": f"{Once.__module__}:Once", "nas-nsga2": "nsga2", "nas-tpe": "tpe"}
    peers: dict[str, Search] = {name: observed_front(one) for name, one in inner.items()} | {"botorch": botorch}
    reports = {
        name: [search(landscape, noise, seed) for seed in (seeds[:2] if search is botorch else seeds)]
        for name, search in {"": ours, **({} if quick else peers)}.items()
    }
    shares = {
        name: statistics.median(landscape.hypervolume(one.front) for one in each) for name, each in reports.items()
    }
    fresh = [pair for one in reports[""] for pair in one.fresh.items()]
    off = [(mean - landscape.loss[architecture]) / (noise or 1) for architecture, mean in fresh]
    error = calibration_error(landscape, reports[""])
    print(word, *name, shares, error, file=sys.stderr, flush=True)  # hours go by until the end
    return Case(shares, error, off, [one.proposal_s for one in reports[""]])


def figures(quick: bool) -> dict[str, Figure]:
    """Five seeds of all landscapes, as many at once as there are cores; where it is to be quick, one seed of few."""
    names = list(every_landscape(quick))
    cases_to_run = [(word, name, quick) for word in NOISES for name in names]
    if quick:
        cases = dict(zip(cases_to_run, map(run_case, cases_to_run), strict=True))
    else:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # or each of the processes takes every core
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
            cases = dict(zip(cases_to_run, processes.map(run_case, cases_to_run), strict=True))
    figures_by_name = dict[str, Figure]()
    for word in NOISES:
        here = {name: case for (noise, name, _), case in cases.items() if noise == word}
        for (loss, budget), case in here.items():
            peers = {name: share for name, share in case.shares.items() if name}
            figures_by_name[f"hypervolume_{word}_{loss}_{budget}"] = Figure(
                case.shares[""], "share", "higher", None, peers
            )
        least = {name: min(case.shares[name] for case in here.values()) for name in next(iter(here.values())).shares}
        errors = [case.error for case in here.values() if case.error is not None]
        target = 0.98 if word == "half" else None
        figures_by_name[f"hypervolume_{word}"] = Figure(least.pop(""), "share", "higher", target, least)
        figures_by_name[f"calibration_error_{word}"] = Figure(max(errors, default=None), "share", "lower", 0.1)
        figures_by_name[f"fresh_bias_{word}"] = Figure(
            statistics.fmean(off for case in here.values() for off in case.off), "deviations", "higher"
        )
    proposal_times = [proposal_s for case in cases.values() for proposal_s in case.proposals_s]
    return figures_by_name | {"proposal_ms": Figure(1000 * statistics.median(proposal_times), "ms", "lower", 100)}


if __name__ == "__main__":
    main("noisy_search", figures)
