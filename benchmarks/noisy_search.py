"""What a search reports that is true where trainings are noisy: 100 of them, on landscapes whose true front is known.

A hypervolume is that of the true values of what is reported, as a share of the true front's: the figure is the least
over the landscapes, of medians over seeds, and each landscape has one as well. Noise is a multiple of what audits of
this project's tasks measured (AUDITED). `calibration_error` is how far, over all architectures that were trained, the
chance to be on their front is from the share that are, by fifths of the chance: the greatest over the landscapes.
`fresh_bias` is how far above the truth means of fresh seeds are that stand on reported fronts, in deviations of the
noise: below 0 they are too good, for they had a part in being there.

Peers train nothing twice. `nas-nsga2` and `nas-tpe` are Optuna's samplers made true to the budget, `single` is this
search without another seed for anything: they report what nothing else that was measured beats. `botorch` reports what
nothing beats by its model's expectations; it takes so long that it has two seeds.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import optuna
import torch

from benchmarks.form import Figure, main
from benchmarks.landscapes import LOSSES, Landscape, interacting, landscapes
from benchmarks.search_efficiency import BUDGETS
from nas.samplers import DEFAULT
from nas.sampling import BudgetSampler, Situation
from nas.sampling.axes import Coordinates
from nas.sampling.surrogate import Surrogate
from nas.simulation import Outcome, simulate
from results import table
from results.pareto import non_dominated
from results.standing import standings
from search_spaces.architecture import Architecture
from search_spaces.count import Count
from search_spaces.space import Candidate

TRIALS, CONFIRMING = 100, 25

AUDITED = 0.5
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
class Reported:
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


Search = Callable[[Landscape, float, int], Reported]
"""(landscape, deviation of noise, seed) -> what is reported."""


def ours(landscape: Landscape, noise: float, seed: int) -> Reported:
    """This project's default search, which knows what FLOPs are, and confirms at its end."""
    trained, proposal_s = trainings(landscape, DEFAULT, noise, seed, CONFIRMING)
    lines = [
        {
            **asdict(one.architecture),
            "key": one.architecture.key,
            "identity": str(number),
            "loss": one.loss,
            "flops": int(one.flops),
        }
        for number, one in enumerate(trained)
    ]
    confirming = {str(number) for number in range(TRIALS - CONFIRMING, TRIALS)}
    found = standings(table.from_records(lines), {"loss": "min", "flops": "min"}, confirming)
    by_key = {one.architecture.key: one.architecture for one in trained}
    named = [(by_key[str(one.record["key"])], one) for one in found]
    front = {architecture for architecture, one in named if one.stands}
    fresh = {architecture: float(one.record["loss"]) for architecture, one in named if one.stands and one.confirmed}
    return Reported(front, {architecture: one.chance for architecture, one in named}, fresh, proposal_s)


def as_measured(inner: str) -> Search:
    """A search that trains nothing twice, and believes what it measured."""

    def run(landscape: Landscape, noise: float, seed: int) -> Reported:
        trained, proposal_s = trainings(landscape, inner, noise, seed, 0)
        stands = non_dominated(np.array([(one.loss, one.flops) for one in trained]))
        return Reported({one.architecture for one, on in zip(trained, stands, strict=True) if on}, {}, {}, proposal_s)

    return run


def botorch(landscape: Landscape, noise: float, seed: int) -> Reported:
    """BoTorch's qLogNEHVI over the same feasible set, with FLOPs known, which reports what its model expects."""
    from benchmarks.botorch_search import NoisyHypervolume, believed

    torch.set_num_threads(1)
    inner = f"{NoisyHypervolume.__module__}:{NoisyHypervolume.__name__}"
    trained, proposal_s = trainings(landscape, inner, noise, seed, 0)
    number = {candidate.architecture: index for index, candidate in enumerate(landscape.feasible)}
    at = np.array([number[one.architecture] for one in trained], dtype=np.intp)
    losses = believed(Coordinates.of(landscape.feasible), at, np.array([one.loss for one in trained]))
    stands = non_dominated(np.stack([losses, [one.flops for one in trained]], axis=1))
    return Reported({one.architecture for one, on in zip(trained, stands, strict=True) if on}, {}, {}, proposal_s)


class Once(Surrogate):
    """This project's rule, where nothing may have another seed."""

    def propose(self, situation: Situation) -> int:
        """Choose what is new."""
        return super().propose(replace(situation, again=situation.untried[:0]))


def trainings(
    landscape: Landscape, inner: str, noise: float, seed: int, confirming: int
) -> tuple[list[Training], float]:
    """The trainings of a search, the last of which confirm, and the seconds of telling one and proposing the next."""
    costs = {architecture: (np.nan, float(landscape.flops[architecture])) for architecture in landscape.inside}
    sampler = BudgetSampler(landscape.feasible, inner, seed, costs.__getitem__)
    draw, trained, seconds, told = np.random.default_rng(seed), list[Training](), list[float](), time.process_time()

    def train(candidate: Candidate, before: int) -> Outcome:
        nonlocal told
        seconds.append(time.process_time() - told)
        architecture = candidate.architecture
        loss = landscape.loss[architecture] + noise * float(draw.standard_normal())
        trained.append(Training(architecture, loss, costs[architecture][1]))
        told = time.process_time()
        return Outcome((loss, trained[-1].flops))

    simulate(sampler, ("min", "min"), train, TRIALS, confirming)
    return trained, statistics.median(seconds[-20:])


def calibration_error(landscape: Landscape, every: Sequence[Reported]) -> float | None:
    """How far chances are from shares, the mean over architectures; None where no chances are said."""
    said, true = list[float](), list[bool]()
    for reported in every:
        names = list(reported.chances)
        values = np.array([(landscape.loss[name], landscape.flops[name]) for name in names])
        said += [reported.chances[name] for name in names]
        true += non_dominated(values).tolist()
    if not np.isfinite(said).all():  # without noise seeds are alike, and nothing says that there is none
        return None
    chances, share = np.array(said), np.array(true, dtype=float)
    fifth = np.minimum((chances * FIFTHS).astype(int), FIFTHS - 1)
    off = [abs(chances[fifth == one].sum() - share[fifth == one].sum()) for one in range(FIFTHS)]
    return float(sum(off) / len(chances))


def floored(architecture: Architecture, count: Count) -> float:
    """A loss below which nothing comes, as a task that is too easy has."""
    return max(interacting(architecture, count), 1.5)


def figures(quick: bool) -> dict[str, Figure]:
    """Five seeds of all landscapes; where it is to be quick, one seed of the first of them."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    losses = {name: (loss, 0.0) for name, (loss, noise) in LOSSES.items() if not noise} | {"floored": (floored, 0.0)}
    every = landscapes(BUDGETS, {"interacting": (interacting, 0.0)} if quick else losses)
    seeds = range(1 if quick else 5)
    inner = {"single": f"{Once.__module__}:Once", "nas-nsga2": "nsga2", "nas-tpe": "tpe"}
    peers: dict[str, Search] = {name: as_measured(one) for name, one in inner.items()} | {"botorch": botorch}
    found, spent = dict[str, Figure](), list[float]()
    for word, times in NOISES.items():
        least, worst, off = dict[str, float](), None, list[float]()
        for (loss, budget), landscape in every.items():
            noise = times * AUDITED * float(np.std([landscape.loss[one] for one in landscape.inside]))
            reported = {
                name: [search(landscape, noise, seed) for seed in (seeds[:2] if search is botorch else seeds)]
                for name, search in {"": ours, **({} if quick else peers)}.items()
            }
            shares = {
                name: statistics.median(landscape.hypervolume(one.front) for one in each)
                for name, each in reported.items()
            }
            least = {name: min(share, least.get(name, 1.0)) for name, share in shares.items()}
            error = calibration_error(landscape, reported[""])
            worst = None if error is None else max(worst or 0.0, error)
            fresh = [pair for one in reported[""] for pair in one.fresh.items()]
            off += [(mean - landscape.loss[architecture]) / (noise or 1) for architecture, mean in fresh]
            spent += [one.proposal_s for one in reported[""]]
            print(word, loss, budget, shares, error, file=sys.stderr, flush=True)  # hours go by until the end
            found[f"hypervolume_{word}_{loss}_{budget}"] = Figure(shares.pop(""), "share", "higher", None, shares)
        target = 0.98 if word == "half" else None
        found[f"hypervolume_{word}"] = Figure(least.pop(""), "share", "higher", target, least)
        found[f"calibration_error_{word}"] = Figure(worst, "share", "lower", 0.1)
        found[f"fresh_bias_{word}"] = Figure(statistics.fmean(off), "deviations", "higher")
    return found | {"proposal_ms": Figure(1000 * statistics.median(spent), "ms", "lower", 100)}


if __name__ == "__main__":
    main("noisy_search", figures)
