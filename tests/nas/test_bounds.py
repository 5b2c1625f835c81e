"""Numbers that enter are bounded at what a Row can hold, in one line; a search of which all failed says why."""

from typing import Any

import pytest

import nas
from nas.commands import show
from nas.commands.results import query_rows
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.spec import Spec
from toy_searches import TOYS, Search

HUGE = 10**22


@pytest.mark.parametrize("name", ["seed", "trials", "workers", "threads"])
def test_a_search_takes_no_huge_number(search: Search, name: str) -> None:
    with pytest.raises(UserError, match=f"{name} must be at most [0-9]+, got {HUGE}") as refused:
        search(**{name: HUGE})
    assert "\n" not in str(refused.value)


def test_a_profile_takes_no_huge_batch() -> None:
    with pytest.raises(UserError, match=f"--batch must be at most [0-9]+, got {HUGE}"):
        nas.profile(f"{TOYS}:Toy", preset="smoke", batch=HUGE)


def test_the_largest_seed_is_written_and_read(search: Search, asked: dict[str, Any]) -> None:
    study = search(seed=2**63 - 1, trials=2)
    assert {row.seed for row in study.rows()} == {2**63 - 1}
    assert nas.load("s", storage=asked["storage"]).rows() == study.rows()
    with pytest.raises(UserError, match="seed must be at most 9223372036854775807"):
        nas.evaluate(f"{TOYS}:Toy", preset="smoke", seed=2**63, storage=asked["storage"])


@pytest.mark.parametrize("name", ["depth", "width", "hidden", "heads", "head_dim"])
def test_an_architecture_takes_no_huge_number(name: str) -> None:
    values = {"depth": 1, "width": 8, "hidden": 8, "heads": 1, "head_dim": 8, name: HUGE}
    with pytest.raises(UserError, match=f"{name} must be at most [0-9]+, got {HUGE}"):
        Architecture(**values)
    with pytest.raises(UserError, match="at most 64 bits"):
        Spec.parse(f"dca(k={HUGE})")


def test_a_huge_limit_is_all_rows(search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    query_rows(search(trials=2), limit=HUGE)
    assert "2 of 2 rows" in capsys.readouterr().out


@pytest.mark.parametrize("pareto", [None, "accuracy"])
def test_where_all_trials_failed_the_first_reason_is_said(search: Search, pareto: str | None) -> None:
    study = search(task=f"{TOYS}:Stumbling", arch="depth=1", space="head-dim", budget="", trials=2)
    assert study.front() == []
    reason, remedy = "the first with: RuntimeError: a layer broke", "`; another --study tries them again"
    said = rf"no complete row yet: 2 ended, {reason}.*{remedy}\.$"
    with pytest.raises(UserError, match=said):
        show.front(study) if pareto is None else query_rows(study, pareto=pareto)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("latency_ms<=1000", "architectures in space 'joint'; latency_ms<=1000.0 is measured before each training"),
        ("params<=3k,step_ms<=1000", "are within params<=3000; step_ms<=1000.0 is measured before each training"),
        ("params<=3k", "are within params<=3000"),
    ],
)
def test_a_bound_that_is_measured_is_not_said_to_be_kept_before(
    budget: str, said: str, search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    search(budget=budget, trials=1)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("study s: ")]
    assert len(lines) == 1
    assert lines[0].endswith(said)
