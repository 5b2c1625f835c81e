"""Quality of a search's reported front under noise, after 100 trainings on landscapes whose true front is known.

A hypervolume is that of the reported architectures' true values, as a share of the true front's. The figure is the
minimum over landscapes of medians over seeds; each landscape also has its own. Noise is a multiple of what audits of
this project's tasks measured (NOISE_RATIO). `calibration_error` compares, in fifths of the predicted probability, the
probability of being on the front of all trained architectures with the fraction that are: the maximum over landscapes.
`fresh_bias` is the error of held-out means on reported fronts, in standard deviations of the noise. Below 0 they are
too good, because they helped to select the front.

Peers repeat no architecture. `nas-nsga2` and `nas-tpe` are Optuna's samplers restricted to the budget, and `single` is
this search without repeated seeds. These three report the front of their measurements. `botorch` reports the front of
its model's posterior means; it is so slow that it has two seeds.
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
from nas.samplers.encoding import CandidateEncoding
from nas.samplers.proposer import SearchState
from nas.samplers.registry import DEFAULT
from nas.samplers.surrogate_sampler import Surrogate
from results.records import table
from results.stats.architecture_summary import summarize
from results.stats.gaussian_process import Array
from results.stats.pareto import non_dominated
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Candidate
from search_spaces.support.count import Count

TRIALS, CONFIRMING = 100, 25

NOISE_RATIO = 0.5
"""Standard deviation of one seed's noise (seed and examples) over that of architectures.

By the best metric of each task in docs/studies/audits.md: stdlib-lm 0.05, digit-ranks-vit 0.1, digits-vit and
lra-listops 0.5, goal-point-maze 1.0.
"""

NOISES = {"without": 0.0, "half": 0.5, "twice": 2.0}

FIFTHS = 5


@dataclass(frozen=True)
class Training:
    """One training of a search: the architecture, its measured loss and its FLOPs."""

    architecture: Architecture
    loss: float
    flops: float


@dataclass(frozen=True)
class SearchReport:
    """The final report of a search.

    Attributes:
        front: The architectures that it reports.
        chances: Trained architecture -> its probability of being on the front of these; empty if the search gives none.
        fresh: Reported architecture with held-out seeds -> the mean of their losses.
        proposal_s: CPU seconds to tell an outcome and propose the next candidate, the median of the last twenty.
    """

    front: set[Architecture]
    chances: Mapping[Architecture, float]
    fresh: Mapping[Architecture, float]
    proposal_s: float


Search = Callable[[Landscape, float, int], SearchReport]
"""(landscape, standard deviation of noise, seed) -> report."""


def ours(landscape: Landscape, noise: float, seed: int) -> SearchReport:
    """Run this project's default search, which knows FLOPs and re-evaluates at its end."""
    observations, proposal_s = trainings(landscape, DEFAULT, noise, seed, CONFIRMING)
    lines = [
        {
            **asdict(observation.architecture),
            "key": observation.architecture.key,
            "identity": str(number),
            "loss": observation.loss,
            "flops": int(observation.flops),
        }
        for number, observation in enumerate(observations)
    ]
    confirming = {str(number) for number in range(TRIALS - CONFIRMING, TRIALS)}
    summaries = summarize(table.from_records(lines), {"loss": "min", "flops": "min"}, confirming)
    by_key = {observation.architecture.key: observation.architecture for observation in observations}
    by_architecture = [(by_key[str(summary.record["key"])], summary) for summary in summaries]
    front = {architecture for architecture, summary in by_architecture if summary.on_front}
    fresh = {
        architecture: float(summary.record["loss"])
        for architecture, summary in by_architecture
        if summary.on_front and summary.is_held_out
    }
    return SearchReport(
        front, {architecture: summary.p_front for architecture, summary in by_architecture}, fresh, proposal_s
    )


def observed_front(inner: str) -> Search:
    """Return a search that repeats no architecture and reports the front of its measurements."""

    def run(landscape: Landscape, noise: float, seed: int) -> SearchReport:
        observations, proposal_s = trainings(landscape, inner, noise, seed, 0)
        return front_report(observations, np.array([observation.loss for observation in observations]), proposal_s)

    return run


def botorch(landscape: Landscape, noise: float, seed: int) -> SearchReport:
    """Run BoTorch's qLogNEHVI over the same feasible set, with FLOPs known, and report the front of posterior means."""
    from benchmarks.botorch_search import NoisyHypervolume, posterior_means

    torch.set_num_threads(1)
    inner = f"{NoisyHypervolume.__module__}:{NoisyHypervolume.__name__}"
    observations, proposal_s = trainings(landscape, inner, noise, seed, 0)
    number = {candidate.architecture: index for index, candidate in enumerate(landscape.feasible)}
    at = np.array([number[observation.architecture] for observation in observations], dtype=np.intp)
    losses = posterior_means(
        CandidateEncoding.of(landscape.feasible), at, np.array([observation.loss for observation in observations])
    )
    return front_report(observations, losses, proposal_s)


def front_report(observations: Sequence[Training], losses: Array, proposal_s: float) -> SearchReport:
    """Return the report of the front of these losses and FLOPs, without probabilities."""
    stands = non_dominated(np.stack([losses, [observation.flops for observation in observations]], axis=1))
    front = {observation.architecture for observation, on in zip(observations, stands, strict=True) if on}
    return SearchReport(front, {}, {}, proposal_s)


class SurrogateWithoutRepeats(Surrogate):
    """This project's sampler, without repeated architectures."""

    def propose(self, state: SearchState) -> int:
        """Return a candidate that was not trained before."""
        return super().propose(replace(state, repeatable=state.new[:0]))


def trainings(
    landscape: Landscape, inner: str, noise: float, seed: int, confirming: int
) -> tuple[list[Training], float]:
    """Return the trainings of a search, the last of which re-evaluate, and `proposal_s`."""
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
    """Return the difference between probabilities and fractions, averaged over architectures; None without any."""
    probabilities, true = list[float](), list[bool]()
    for report in every:
        names = list(report.chances)
        values = np.array([(landscape.loss[name], landscape.flops[name]) for name in names])
        probabilities += [report.chances[name] for name in names]
        true += non_dominated(values).tolist()
    if not np.isfinite(probabilities).all():  # without noise, seeds are equal and errors cannot be estimated
        return None
    chances, share = np.array(probabilities), np.array(true, dtype=float)
    fifth = np.minimum((chances * FIFTHS).astype(int), FIFTHS - 1)
    off = [abs(chances[fifth == k].sum() - share[fifth == k].sum()) for k in range(FIFTHS)]
    return float(sum(off) / len(chances))


def loss_with_floor(architecture: Architecture, count: Count) -> float:
    """Return a loss with a lower bound, as of a task that is too easy."""
    return max(interacting(architecture, count), 1.5)


@dataclass(frozen=True)
class Case:
    """The results for a landscape at a noise level.

    Attributes:
        shares: Search -> median hypervolume of its report over seeds; "" is this project's.
        error: The calibration error, None without probabilities.
        off: Error of each reported mean of held-out seeds, in standard deviations of the noise.
        proposals_s: CPU seconds of a proposal, for each search.
    """

    shares: dict[str, float]
    error: float | None
    off: list[float]
    proposals_s: list[float]


@cache
def every_landscape(quick: bool) -> dict[tuple[str, str], Landscape]:
    """Return (name of a loss, name of a budget) -> landscape; only one loss if quick."""
    losses = {name: (loss, 0.0) for name, (loss, noise) in LOSSES.items() if not noise} | {
        "floored": (loss_with_floor, 0.0)
    }
    return landscapes(BUDGETS, {"interacting": (interacting, 0.0)} if quick else losses)


def run_case(case: tuple[str, tuple[str, str], bool]) -> Case:
    """Return the results for a case: names of noise and landscape, whether to be quick. May run in a worker process."""
    word, name, quick = case
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    landscape, seeds = every_landscape(quick)[name], range(1 if quick else 5)
    noise = (
        NOISES[word] * NOISE_RATIO * float(np.std([landscape.loss[architecture] for architecture in landscape.inside]))
    )
    inner = {
        "single": f"{SurrogateWithoutRepeats.__module__}:{SurrogateWithoutRepeats.__name__}",
        "nas-nsga2": "nsga2",
        "nas-tpe": "tpe",
    }
    peers: dict[str, Search] = {name: observed_front(one) for name, one in inner.items()} | {"botorch": botorch}
    reports = {
        name: [search(landscape, noise, seed) for seed in (seeds[:2] if search is botorch else seeds)]
        for name, search in {"": ours, **({} if quick else peers)}.items()
    }
    shares = {
        name: statistics.median(landscape.hypervolume(report.front) for report in each)
        for name, each in reports.items()
    }
    fresh = [pair for report in reports[""] for pair in report.fresh.items()]
    off = [(mean - landscape.loss[architecture]) / (noise or 1) for architecture, mean in fresh]
    error = calibration_error(landscape, reports[""])
    print(word, *name, shares, error, file=sys.stderr, flush=True)  # progress, since all cases take hours
    return Case(shares, error, off, [report.proposal_s for report in reports[""]])


def figures(quick: bool) -> dict[str, Figure]:
    """Measure five seeds of all landscapes, in one process for each core; if quick, one seed of one loss."""
    names = list(every_landscape(quick))
    cases_to_run = [(word, name, quick) for word in NOISES for name in names]
    if quick:
        cases = dict(zip(cases_to_run, map(run_case, cases_to_run), strict=True))
    else:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # else each process takes every core
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
