"""Numbers are bounded by what a Row can hold; a search whose trials all failed gives the reason."""

from typing import Any

import pytest

import nas
from expect import raises
from grouped import grouped
from nas.cli import printers
from nas.cli.printers.query import print_query
from nas.request.search_request import build_request
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.spec import Spec
from toy_searches import TOYS, Search

HUGE = 10**22


def test_huge_numbers_are_errors(search: Search) -> None:
    with grouped() as case:
        for name in ("seed", "trials", "workers", "threads"):
            call = search if name in ("seed", "trials") else nas.Resources
            with case(name), raises("out-of-range", option=f"--{name}", value=HUGE) as error:
                call(**{name: HUGE})
            with case(f"the most of {name}"):
                assert 0 < error.value.fields["most"] < HUGE
        for name in ("depth", "width", "hidden", "heads", "head_dim"):
            values = {"depth": 1, "width": 8, "hidden": 8, "heads": 1, "head_dim": 8, name: HUGE}
            with case(name), raises("out-of-range", option=name, value=HUGE):
                Architecture(**values)
        with case("--batch"), raises("out-of-range", option="--batch", value=HUGE):
            nas.profile(f"{TOYS}:Toy", preset="smoke", batch=HUGE)
        with case("an option of a topology"), raises("out-of-range", value=str(HUGE)):
            Spec.parse(f"dca(k={HUGE})")


def test_the_largest_seed_is_written_and_read(search: Search, search_args: dict[str, Any]) -> None:
    study = search(seed=2**63 - 1, trials=2, space="depth-heads")
    assert {row.seed for row in study.rows()} == {2**63 - 1}
    assert nas.load("s", storage=search_args["storage"]).rows() == study.rows()
    with raises("out-of-range", option="--seed", most=2**63 - 1):
        nas.evaluate(f"{TOYS}:Toy", preset="smoke", seed=2**63, storage=search_args["storage"])


def test_a_huge_limit_gives_all_rows(search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    print_query(search(trials=2, space="depth-heads"), limit=HUGE)
    assert "2 of 2" in capsys.readouterr().out


def test_a_study_whose_trials_all_failed_gives_the_first_reason(search: Search) -> None:
    study = search(task=f"{TOYS}:Stumbling", arch="depth=1", space="head-dim", budget="", trials=2)
    assert study.front() == []
    for print_answer in (lambda: printers.print_front(study), lambda: print_query(study, pareto="accuracy")):
        with raises("missing-rows", study="s", needs="complete") as error:
            print_answer()
        assert "RuntimeError: a layer broke" in str(error.value)


def test_summary_separates_bounds_on_counts_from_bounds_on_measurements(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments: Any = {"preset": "smoke", "settings": "", "seed": 0, "sampler": "random", "data": None}
    latency, both, params = (
        build_request(f"{TOYS}:Toy", "depth-heads", "", (), budget, None, **arguments).summary
        for budget in ("latency_ms<=1000", "params<=3k,step_ms<=1000", "params<=3k")
    )
    assert "latency_ms<=1000.0" in latency
    first, _, later = both.partition("; ")
    assert first == params
    assert params.endswith("params<=3000")
    assert later.startswith("step_ms<=1000.0 ")
    search(budget="params<=3k", trials=1, space="depth-heads")
    assert f"study s: {params}" in capsys.readouterr().err.splitlines()


def test_front_takes_another_budget_and_other_objectives(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = search(trials=6, space="depth-heads")
    costs = sorted(row.costs.flops for row in study.rows() if row.costs.flops is not None)
    assert costs[0] < costs[-1]
    printers.print_front(study, budget=[f"flops<={costs[0]}"])
    printed = capsys.readouterr().out
    assert f"flops <= {costs[0]}" in printed
    assert {row.architecture.key for row in study.rows() if row.architecture.key in printed} == {
        row.architecture.key for row in study.rows() if row.costs.flops == costs[0]
    }
    monkeypatch.setenv("COLUMNS", "60")
    printers.print_front(study, objectives="accuracy,params", budget=["flops<=1G"])
    assert {"key", "params", "flops", "accuracy", "expected"} <= {*capsys.readouterr().out.splitlines()[2].split()}
    printers.print_front(study, objectives="loss,params")
    assert "min loss, min params" in capsys.readouterr().out
    with raises("unknown-name", option="objective", value="lss"):
        printers.print_front(study, objectives="lss,params")
