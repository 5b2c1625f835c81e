"""From what somebody typed to a way of searching: names, import paths, and the list of what is installed."""

import subprocess
import sys

import optuna
import pytest

from nas.sampling import BudgetSampler
from search_spaces.errors import UserError
from search_spaces.space import Candidate
from toy_space import ALL, BAND, params, search, study_with

pytestmark = pytest.mark.usefixtures("quiet")


def test_an_unknown_sampler_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="nsga2"):
        BudgetSampler(ALL, "nsga")


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
        ("optuna.samplers:nothing_of_this_name", "unknown sampler 'nothing_of_this_name' of optuna.samplers"),
        ("optuna.trial:TrialState", "could not be constructed"),
        ("math:pi", r"must be an Optuna sampler's class, .* got 3\.14"),
        ("nowhere:Sampler", "could not be imported: ModuleNotFoundError"),
        (":Sampler", "could not be imported"),
        ("math:", "unknown sampler '' of math"),
        ("optuna:Nope", "unknown sampler 'Nope' of optuna: it has none. Optuna's are optuna.samplers:NAME."),
    ],
)
def test_what_cannot_be_a_sampler_says_why(path: str, says: str) -> None:
    def run() -> None:
        sampler = BudgetSampler(BAND, path)
        search(study_with(sampler), sampler, 3)

    with pytest.raises(UserError, match=says) as caught:
        run()
    assert "\n" not in str(caught.value)


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
        "import inspect, sys; from nas.samplers import SAMPLERS;"
        "print([(n, inspect.getdoc(SAMPLERS.load(n)).splitlines()[0]) for n in SAMPLERS.names()]);"
        "assert 'torch' not in sys.modules"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert all(f"('{name}', " in printed for name in ("gp", "nsga2", "random", "surrogate", "tpe"))
