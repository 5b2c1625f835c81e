"""The budget-true sampler: what every way of searching keeps to."""

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from nas.budget import Feasible, feasible, parse_budget
from nas.sampling import SAMPLERS, BudgetSampler, Exhausted
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.space import Candidate, SearchSpace

BASE = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=16)
SPACE = SearchSpace(
    "small",
    BASE,
    {
        "depth": (1, 2, 3, 4, 6, 8),
        "heads": (1, 2, 4),
        "head_dim": (2, 4, 8, 16),
        "topology": ("resnet", "dca", "ancre"),
        "dca.k": (1, 2, 4),
        "ancre.temperature": (0.01, 0.1, 1.0),
    },
)
QUICK = sorted(set(SAMPLERS.names()) - {"gp"})  # gp takes a second for each proposal; it has a test of its own


def params(architecture: Architecture) -> int:
    return architecture.depth * (architecture.heads * architecture.head_dim + 1)


def within(budget: str) -> Feasible:
    return feasible(SPACE, lambda architecture: {"params": params(architecture)}, parse_budget([budget]))


BAND = within("24<=params<=30")
ALL = within("")


def measure(architecture: Architecture) -> tuple[float, float]:
    """A score to be large and a cost to be small."""
    bonus = {"resnet": 0.0, "dca(k=2)": 0.2}.get(architecture.topology, 0.1)
    return architecture.depth**0.5 + 0.1 * architecture.heads + bonus, float(params(architecture))


def study_with(sampler: BudgetSampler, storage: str | optuna.storages.BaseStorage | None = None) -> optuna.Study:
    return optuna.create_study(
        directions=["maximize", "minimize"], sampler=sampler, storage=storage, study_name="s", load_if_exists=True
    )


def search(study: optuna.Study, sampler: BudgetSampler, trials: int) -> list[Candidate]:
    found = []
    for _ in range(trials):
        trial = study.ask()
        found.append(sampler.propose(trial))
        study.tell(trial, measure(found[-1].architecture))
    return found


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(optuna.logging.INFO)


@pytest.mark.parametrize("inner", QUICK)
def test_every_trial_is_new_and_inside_the_budget_until_there_is_none_left(inner: str) -> None:
    sampler = BudgetSampler(BAND, inner)
    study = study_with(sampler)
    assert sampler.remaining(study) == len(BAND) > 30
    found = search(study, sampler, len(BAND))
    assert set(found) == set(BAND)
    assert sampler.remaining(study) == 0
    with pytest.raises(Exhausted, match="tried"):
        sampler.propose(study.ask())


def test_optunas_gaussian_processes_are_true_to_the_budget_too() -> None:
    sampler = BudgetSampler(BAND, "gp")
    found = search(study_with(sampler), sampler, 12)
    assert len(set(found) & set(BAND)) == 12


@pytest.mark.parametrize("inner", QUICK)
def test_what_is_recorded_is_what_is_proposed_and_only_where_it_applies(inner: str) -> None:
    sampler = BudgetSampler(ALL, inner)
    study = study_with(sampler)
    found = search(study, sampler, 30)
    assert [trial.params for trial in study.trials] == [SPACE.members[candidate] for candidate in found]
    assert [sampler.candidate(trial.params) for trial in study.trials] == found


@pytest.mark.parametrize("inner", QUICK)
def test_a_study_in_several_goes_is_the_study_in_one(inner: str) -> None:
    whole = BudgetSampler(BAND, inner, seed=3)
    expected = search(study_with(whole), whole, 40)
    storage, found = optuna.storages.InMemoryStorage(), []
    for trials in (5, 9, 26):  # each with a sampler and a study of its own, as a new process has
        again = BudgetSampler(BAND, inner, seed=3)
        found += search(study_with(again, storage), again, trials)
    assert found == expected


def test_a_study_in_a_database_is_the_study_in_memory(tmp_path: Path) -> None:
    whole = BudgetSampler(BAND, seed=3)
    expected = search(study_with(whole), whole, 14)
    found = []
    for trials in (10, 4):
        again = BudgetSampler(BAND, seed=3)
        found += search(study_with(again, f"sqlite:///{tmp_path}/s.db"), again, trials)
    assert found == expected


@pytest.mark.parametrize("inner", QUICK)
def test_seeds_differ_and_repeat(inner: str) -> None:
    runs = []
    for seed in (0, 0, 1):
        sampler = BudgetSampler(ALL, inner, seed)
        runs.append(search(study_with(sampler), sampler, 20))
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("inner", QUICK)
def test_trials_that_run_at_once_are_all_different(inner: str) -> None:
    sampler = BudgetSampler(ALL, inner)
    study = study_with(sampler)
    search(study, sampler, 20)
    together = [sampler.propose(study.ask()) for _ in range(16)]
    assert len(set(together)) == 16
    assert len({sampler.candidate(trial.params) for trial in study.trials}) == 36


def test_the_base_is_tried_first() -> None:
    sampler = BudgetSampler(ALL)
    assert search(study_with(sampler), sampler, 1) == [Candidate(BASE)]


def test_where_the_base_is_outside_the_budget_the_nearest_inside_is_tried_first() -> None:
    larger = within("params>=50")
    sampler = BudgetSampler(larger)
    (first,) = search(study_with(sampler), sampler, 1)
    assert Candidate(BASE) not in larger.candidates
    assert first.architecture.topology == "resnet"  # a word is farther away than any number
    assert abs(first.architecture.depth - 4) <= 2


@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE])
def test_a_trial_in_any_state_counts_as_tried(state: TrialState) -> None:
    sampler = BudgetSampler(ALL, "random")
    study = study_with(sampler)
    trial = study.ask()
    sampler.propose(trial)
    if state == TrialState.COMPLETE:
        study.tell(trial, (0.0, 0.0))
    elif state != TrialState.RUNNING:
        study.tell(trial, state=state)
    assert sampler.remaining(study) == len(ALL) - 1


def test_finished_trials_are_seen_behind_one_that_runs_long() -> None:
    sampler = BudgetSampler(ALL, "random")
    study = study_with(sampler)
    search(study, sampler, 3)
    long = study.ask()
    sampler.propose(long)
    search(study, sampler, 3)
    assert sampler.remaining(study) == len(ALL) - 7
    study.tell(long, (0.0, 0.0))
    assert sampler.remaining(study) == len(ALL) - 7
    assert BudgetSampler(ALL).remaining(study) == len(ALL) - 7


def test_one_sampler_tells_two_studies_apart() -> None:
    sampler = BudgetSampler(ALL)
    first, second = study_with(sampler), study_with(sampler)
    search(first, sampler, 5)
    assert sampler.remaining(second) == len(ALL)
    assert sampler.remaining(first) == len(ALL) - 5


def test_a_trial_that_died_half_recorded_becomes_what_it_would_have_been(tmp_path: Path) -> None:
    whole = BudgetSampler(ALL)
    expected = search(study_with(whole), whole, 15)
    sampler = BudgetSampler(ALL)
    study = study_with(sampler, f"sqlite:///{tmp_path}/s.db")
    search(study, sampler, 14)
    study.ask().suggest_int("depth", 1, 8, log=True)  # and then its process is gone
    after = BudgetSampler(ALL)
    taken_up = study_with(after, f"sqlite:///{tmp_path}/s.db")
    assert after.propose(optuna.Trial(taken_up, taken_up.trials[-1]._trial_id)) == expected[-1]


def test_what_was_recorded_is_kept_whatever_would_be_proposed_now() -> None:
    sampler = BudgetSampler(ALL, "random")
    study = study_with(sampler)
    study.add_trial(optuna.create_trial(state=TrialState.RUNNING, params={"depth": 6}, distributions={
        "depth": IntDistribution(1, 8, log=True)}))  # fmt: skip
    assert sampler.propose(optuna.Trial(study, study.trials[0]._trial_id)).architecture.depth == 6


def test_an_enqueued_architecture_is_tried_as_it_is_also_again() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    wanted = next(candidate for candidate in ALL if candidate.architecture.topology == "dca(k=4)")
    study.enqueue_trial(SPACE.members[wanted])
    assert sampler.remaining(study) == len(ALL) - 1
    assert search(study, sampler, 1) == [wanted]
    study.enqueue_trial(SPACE.members[wanted])
    assert search(study, sampler, 2) == [wanted, Candidate(BASE)]


def test_an_enqueued_part_is_completed() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    study.enqueue_trial({"depth": 8, "topology": "ancre"})
    (found,) = search(study, sampler, 1)
    assert (found.architecture.depth, found.architecture.topology[:5]) == (8, "ancre")


def test_an_enqueued_architecture_outside_the_budget_is_refused() -> None:
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    study.enqueue_trial({"depth": 8, "heads": 4, "head_dim": 16})
    with pytest.raises(UserError, match=r"within the budget has depth=8"):
        sampler.propose(study.ask())


def test_parameters_that_are_no_architecture_are_refused() -> None:
    with pytest.raises(UserError, match=r"depth=4.*no candidate"):
        BudgetSampler(ALL).candidate({"depth": 4})


def test_a_study_goes_on_with_the_topologies_it_was_begun_with_or_not_at_all() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    search(study, sampler, 3)
    wider = replace(SPACE, axes={**SPACE.axes, "topology": ("resnet", "dca", "ancre", "rmt")})
    after = BudgetSampler(Feasible(wider, tuple(wider)))
    with pytest.raises(UserError, match="begun with other values of axis 'topology' than resnet, dca, ancre, rmt"):
        search(study_with(after, study._storage), after, 1)


def test_an_unknown_sampler_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="nsga2"):
        BudgetSampler(ALL, "nsga")


def test_an_axis_that_does_not_apply_cannot_be_asked_for() -> None:
    sampler = BudgetSampler(ALL)
    trial = study_with(sampler).ask()
    with pytest.raises(ValueError, match=r"dca\.k.*propose"):
        trial.suggest_int("dca.k", 1, 4, log=True)


def test_axes_are_recorded_with_distributions_of_their_kind() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    search(study, sampler, 40)
    recorded = {name: kind for trial in study.trials for name, kind in trial.distributions.items()}
    assert recorded == {
        "depth": IntDistribution(1, 8, log=True),
        "heads": IntDistribution(1, 4, log=True),
        "head_dim": IntDistribution(2, 16, log=True),
        "topology": CategoricalDistribution(("resnet", "dca", "ancre")),
        "dca.k": IntDistribution(1, 4, log=True),
        "ancre.temperature": FloatDistribution(0.01, 1.0, log=True),
    }


RECIPES = SearchSpace(
    "recipes",
    BASE,
    {
        "depth": (1, 2, 4),
        "topology": ("resnet", "dca"),
        "dca.k": (1, 2),
        "recipe.lr": (1e-4, 1e-3, 1e-2),
        "recipe.schedule": ("flat", "cosine"),
    },
)


def test_counts_are_asked_once_for_each_architecture_whatever_its_recipes() -> None:
    asked: list[Architecture] = []

    def counts(architecture: Architecture) -> dict[str, int]:
        asked.append(architecture)
        return {"params": params(architecture)}

    found = feasible(RECIPES, counts, parse_budget(["params<=20"]))
    assert len(asked) == len(set(asked)) == len(RECIPES.architectures) == 9
    assert len(found) == 2 * 3 * 3 * 2
    assert {candidate.architecture.depth for candidate in found} == {1, 2}


@pytest.mark.parametrize("inner", QUICK)
def test_a_recipe_is_searched_with_the_architecture_until_there_is_none_left(inner: str) -> None:
    everything = Feasible(RECIPES, tuple(RECIPES))
    storage, found = optuna.storages.InMemoryStorage(), []
    for trials in (20, 34):  # with a sampler of its own each, as a new process has
        sampler = BudgetSampler(everything, inner)
        study = study_with(sampler, storage)
        for _ in range(trials):
            trial = study.ask()
            found.append(sampler.propose(trial))
            study.tell(trial, (dict(found[-1].settings)["lr"], found[-1].architecture.depth))
    assert set(found) == set(RECIPES)
    assert found[0] == RECIPES.first == Candidate(BASE, (("lr", 1e-3), ("schedule", "flat")))
    assert [trial.params for trial in study.trials] == [RECIPES.members[candidate] for candidate in found]


def test_the_best_recipe_is_found_before_most_are_tried() -> None:
    """The loss rests on the learning rate alone: the model sees it across architectures."""
    rates = tuple(10 ** (-4 + 3 * step / 11) for step in range(12))
    space = SearchSpace("rates", BASE, {"depth": (1, 2, 4, 8), "heads": (1, 2, 4), "recipe.lr": rates})
    sampler = BudgetSampler(Feasible(space, tuple(space)), "surrogate")
    study = optuna.create_study(direction="minimize", sampler=sampler)
    for _ in range(24):
        trial = study.ask()
        study.tell(trial, abs(math.log10(dict(sampler.propose(trial).settings)["lr"] / rates[8])))
    assert study.best_trial.params["recipe.lr"] == rates[8]


@pytest.mark.parametrize("path", ["TPESampler", "NSGAIISampler", "RandomSampler", "QMCSampler", "NSGAIIISampler"])
def test_an_optuna_sampler_by_import_path_is_true_to_the_budget_and_repeats(path: str) -> None:
    def run() -> list[Candidate]:
        sampler = BudgetSampler(BAND, f"optuna.samplers:{path}", seed=5)
        return search(study_with(sampler), sampler, 20)

    found = run()
    assert len(set(found) & set(BAND)) == 20
    assert run() == found


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("optuna.samplers:CmaEsSampler", r"'optuna.samplers:CmaEsSampler' failed: .* multi-objective .*[^.]\. Choose"),
        ("optuna.samplers:GridSampler", "could not be constructed: TypeError: .*search_space"),
        ("optuna.samplers:BaseSampler", "could not be constructed: TypeError: .*abstract"),
        ("optuna.samplers:TPESampla", "Did you mean 'TPESampler'"),
        ("optuna.samplers:nothing_of_this_name", "unknown sampler of optuna.samplers"),
        ("optuna.trial:TrialState", "could not be constructed"),
        ("math:pi", r"must be an Optuna sampler's class, .* got 3\.14"),
        ("nowhere:Sampler", "could not be imported: ModuleNotFoundError"),
        (":Sampler", "could not be imported"),
        ("math:", "unknown sampler of math"),
    ],
)
def test_what_cannot_be_a_sampler_says_why(path: str, says: str) -> None:
    def run() -> None:
        sampler = BudgetSampler(BAND, path)
        search(study_with(sampler), sampler, 3)

    with pytest.raises(UserError, match=says) as caught:
        run()
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_cma_es_searches_one_objective_as_it_does_by_itself() -> None:
    pytest.importorskip("cmaes")
    sampler = BudgetSampler(ALL, "optuna.samplers:CmaEsSampler")
    study = optuna.create_study(direction="maximize", sampler=sampler)
    found = []
    for _ in range(60):
        trial = study.ask()
        found.append(sampler.propose(trial))
        study.tell(trial, params(found[-1].architecture))
    assert len(set(found)) == 60
    shares = [params(candidate.architecture) / 520 for candidate in found]  # of the largest
    assert sum(shares[40:]) > 1.5 * sum(shares[:20])


def test_samplers_are_listed_with_a_line_each_without_torch() -> None:
    script = (
        "import inspect, sys; from nas.sampling import SAMPLERS;"
        "print([(n, inspect.getdoc(SAMPLERS.load(n)).splitlines()[0]) for n in SAMPLERS.names()]);"
        "assert 'torch' not in sys.modules"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert all(f"('{name}', " in printed for name in ("gp", "nsga2", "random", "surrogate", "tpe"))
