"""Samplers by name, by import path, and as a list."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest

from expect import raises
from grouped import grouped
from nas.budget.bounds import feasible, parse_budget
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.registry import SAMPLERS
from search_spaces.spaces.space import Candidate, SearchSpace
from search_spaces.support.errors import Kind
from toy_space import ALL, BAND, BASE, params, search, study_with

pytestmark = pytest.mark.usefixtures("quiet")


def test_error_of_an_unknown_sampler_names_the_nearest() -> None:
    with raises("unknown-name", option="sampler", value="nsga", nearest="nsga2"):
        BudgetSampler(ALL, "nsga")


def test_optuna_samplers_by_import_path_keep_to_the_budget_and_repeat() -> None:
    def run(name: str) -> list[Candidate]:
        sampler = BudgetSampler(BAND, f"optuna.samplers:{name}", seed=5)
        return search(study_with(sampler), sampler, 20)

    with grouped() as case:
        for name in ("TPESampler", "NSGAIISampler", "RandomSampler", "QMCSampler", "NSGAIIISampler"):
            with case(name):
                candidates = run(name)
                assert len(set(candidates) & set(BAND)) == 20
                assert run(name) == candidates


def test_axes_of_one_value_have_it() -> None:
    space = SearchSpace("narrow", BASE, {"depth": (1, 2, 3, 4), "heads": (2,), "head_dim": (2, 4)})
    members = feasible(space, lambda architecture: {"params": params(architecture)}, parse_budget([]))
    with grouped() as case:
        for name in ("random", "tpe"):
            with case(name):
                sampler = BudgetSampler(members, name, seed=5)
                candidates = search(study_with(sampler), sampler, 8)
                assert {candidate.architecture.heads for candidate in candidates} == {2}
                assert len(set(candidates)) == 8


MISTAKES: list[tuple[str, Kind, dict[str, Any], str]] = [
    ("optuna.samplers:CmaEsSampler", "bad-plugin", {"cause": "ValueError"}, "multi-objective"),
    ("optuna.samplers:GridSampler", "bad-plugin", {"cause": "TypeError"}, "search_space"),
    ("optuna.samplers:BaseSampler", "bad-plugin", {"cause": "TypeError"}, "abstract"),
    ("optuna.samplers:TPESampla", "unknown-name", {"value": "TPESampla", "nearest": "TPESampler"}, ""),
    ("optuna.samplers:nothing_of_this_name", "unknown-name", {"value": "nothing_of_this_name"}, "optuna.samplers"),
    ("optuna.trial:TrialState", "bad-plugin", {"cause": "TypeError"}, ""),
    ("math:pi", "bad-plugin", {"sampler": "math:pi", "value": math.pi}, ""),
    ("nowhere:Sampler", "bad-plugin", {"cause": "ModuleNotFoundError"}, ""),
    (":Sampler", "bad-plugin", {"cause": "ValueError"}, ""),
    ("math:", "unknown-name", {"value": ""}, "math"),
    ("optuna:Nope", "unknown-name", {"value": "Nope", "module": "optuna", "choices": ()}, "optuna.samplers:NAME"),
]


def test_wrong_samplers_are_errors() -> None:
    """Tokens are from a library's own message."""
    with grouped() as case:
        for path, kind, fields, token in MISTAKES:
            with case(path):
                with raises(kind, **fields) as error:
                    sampler = BudgetSampler(BAND, path)
                    search(study_with(sampler), sampler, 3)
                assert token in str(error.value)
                assert "multi-objective" not in token or ".." not in str(error.value)


def test_user_error_of_a_samplers_module_names_the_sampler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statement = 'UserError("needs-extra", "this needs a package.", extra="there")'
    (tmp_path / "telling_sampler.py").write_text(
        f"from search_spaces.support.errors import UserError\n\nraise {statement}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "telling_sampler:Sampler"
    with raises("needs-extra", extra="there", plugin=name, place="telling_sampler") as error:
        BudgetSampler(BAND, name)
    assert name in str(error.value)


def test_cma_es_searches_one_objective() -> None:
    pytest.importorskip("cmaes")
    sampler = BudgetSampler(ALL, "optuna.samplers:CmaEsSampler")
    study = optuna.create_study(direction="maximize", sampler=sampler)
    candidates = []
    for _ in range(60):
        trial = study.ask()
        candidates.append(sampler.propose(trial))
        study.tell(trial, params(candidates[-1].architecture))
    assert len(set(candidates)) == 60
    shares = [params(candidate.architecture) / 520 for candidate in candidates]  # of the largest architecture
    assert sum(shares[40:]) > 1.5 * sum(shares[:20])


def test_samplers_have_names_and_descriptions() -> None:
    descriptions = {name: SAMPLERS.description(name) for name in SAMPLERS.names()}
    assert {"gp", "nsga2", "random", "surrogate", "tpe"} <= descriptions.keys()
    assert all(descriptions.values())


@pytest.mark.outside
def test_samplers_are_loaded_without_torch() -> None:
    script = (
        "import inspect, sys; from nas.samplers.registry import SAMPLERS;"
        "print([(n, inspect.getdoc(SAMPLERS.load(n)).splitlines()[0]) for n in SAMPLERS.names()]);"
        "assert 'torch' not in sys.modules"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert all(f"('{name}', " in output for name in ("gp", "nsga2", "random", "surrogate", "tpe"))
