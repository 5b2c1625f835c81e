"""The whole search on toy tasks, through the same function as the command."""

import sqlite3
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from nas import store
from nas.commands.search import Request, run
from results.row import Row
from search_spaces.errors import UserError

TOYS = Path(__file__).parent / "toy_tasks.py"


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    monkeypatch.chdir(tmp_path)
    return Request(
        task=f"{TOYS}:Toy",
        space="joint",
        arch="",
        budget=["params<=3k"],
        objectives="accuracy,flops",
        trials=8,
        preset="smoke",
        seed=0,
        sampler="random",
        workers=1,
        data=None,
        study="s",
        storage=f"sqlite:///{tmp_path}/studies.db",
        plot=None,
    )


def rows(request: Request) -> list[Row]:
    return store.rows_of(store.load_study(store.open_storage(request.storage), request.study))


def found(request: Request) -> list[tuple[object, ...]]:
    return [(row.architecture, row.status, dict(row.validation), dict(row.test), row.costs) for row in rows(request)]


def test_every_trial_is_distinct_and_inside_the_budget(request_: Request) -> None:
    run(request_)
    assert len(rows(request_)) == 8
    assert len({row.architecture for row in rows(request_)}) == 8
    assert all(row.costs.params is not None and row.costs.params <= 3000 for row in rows(request_))


def test_what_optuna_recorded_is_what_was_evaluated(request_: Request) -> None:
    run(request_)
    study = store.load_study(store.open_storage(request_.storage), "s")
    for trial, row in zip(study.trials, rows(request_), strict=True):
        assert {"depth": row.architecture.depth, "heads": row.architecture.heads}.items() <= trial.params.items()
        assert trial.values == [row.validation["accuracy"], row.costs.flops]


def test_the_same_seed_gives_the_same_study_also_in_two_goes(request_: Request) -> None:
    run(request_)
    again = replace(request_, study="again", trials=3)
    run(again)
    run(replace(again, trials=8))
    assert found(again) == found(request_)
    other = replace(request_, study="other", seed=1)
    run(other)
    assert found(other) != found(request_)


def test_an_interrupted_study_goes_on_as_if_it_had_not_been(request_: Request, tmp_path: Path) -> None:
    run(request_)
    # The interrupted task is the same one by its settings: only what it does at its third evaluation differs.
    copy = tmp_path / "copy.py"
    copy.write_text(TOYS.read_text().replace("class Interrupted(Toy)", "class Toy_(Toy)"))
    halted = replace(request_, study="halted", task=f"{copy}:Toy_")
    with pytest.raises(KeyboardInterrupt):
        run(halted)
    assert len(rows(halted)) == 2
    run(halted)
    assert found(halted) == found(request_)


def test_two_workers_give_each_architecture_the_row_that_one_gives(request_: Request) -> None:
    run(request_)
    parallel = replace(request_, study="parallel", workers=2)
    run(parallel)
    assert len(rows(parallel)) == 8
    alone = {row.architecture: (row.validation, row.test, row.costs) for row in rows(request_)}
    both = {row.architecture: (row.validation, row.test, row.costs) for row in rows(parallel)}
    assert set(alone) & set(both)
    assert all(alone[architecture] == both[architecture] for architecture in set(alone) & set(both))


def test_a_trial_that_fails_in_any_way_is_a_row_with_its_reason(request_: Request) -> None:
    stumbling = replace(request_, task=f"{TOYS}:Stumbling", budget=[], trials=40)
    run(stumbling)
    reasons = {row.architecture.depth: row.error for row in rows(stumbling)}
    assert reasons[1] == "RuntimeError: a layer broke"
    assert reasons[2] == "OutOfMemoryError: CUDA out of memory"
    assert reasons[3] == "Diverged: loss is nan at step 7"
    assert reasons[6] == "Diverged: accuracy is nan"
    assert reasons[4] is None
    assert {row.status for row in rows(stumbling)} == {"complete", "failed"}


def test_a_process_that_dies_fails_its_trial_and_not_the_search(request_: Request) -> None:
    deadly = replace(request_, task=f"{TOYS}:Deadly", space="depth-heads", budget=["params<=1k"], trials=36, workers=2)
    run(deadly)
    assert len(rows(deadly)) > 5
    for row in rows(deadly):
        assert (row.status == "failed") == (row.architecture.depth == row.architecture.heads == 1)
        assert row.status == "complete" or "died" in str(row.error)


def test_an_exhausted_feasible_set_ends_the_search_and_says_so(
    request_: Request, capsys: pytest.CaptureFixture[str]
) -> None:
    run(replace(request_, space="depth-heads", budget=["params<=1k"], trials=1000))
    assert "every architecture within the budget has been tried" in capsys.readouterr().out
    assert 0 < len(rows(request_)) < 36


def test_a_study_is_continued_only_with_its_own_settings(request_: Request) -> None:
    run(replace(request_, trials=2))
    with pytest.raises(UserError, match=r"budget.*params<=3000.*--study"):
        run(replace(request_, budget=["params<=4k"]))
    assert len(rows(request_)) == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"budget": ["params<=10"]}, "smallest"),
        ({"budget": ["parms<=10k"]}, "params"),
        ({"objectives": "acuracy,flops"}, "accuracy"),
        ({"objectives": "test_accuracy"}, "never searched on"),
        ({"objectives": "flops,flops"}, "twice"),
        ({"space": "jiont"}, "joint"),
        ({"preset": "prox"}, "proxy"),
        ({"sampler": "radnom"}, "random"),
        ({"task": "digits-vti"}, "digits-vit"),
        ({"task": "nowhere.py:Toy"}, "nowhere.py"),
        ({"arch": "depth=5,topology=dcaa"}, "dca"),
        ({"storage": "nonsense"}, "sqlite"),
    ],
)
def test_a_mistake_is_said_before_anything_is_trained(request_: Request, change: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        run(replace(request_, **change))


def test_a_store_that_is_no_database_is_named_and_left_alone(request_: Request, tmp_path: Path) -> None:
    (tmp_path / "studies.db").write_text("precious, and not a database at all " * 40)
    with pytest.raises(UserError, match=r"studies\.db"):
        run(request_)
    assert "precious" in (tmp_path / "studies.db").read_text()


def test_a_second_coordinator_of_the_same_study_is_refused(request_: Request) -> None:
    with store.only_writer(request_.storage, "s"), pytest.raises(UserError, match="another process"):
        run(request_)


def test_a_store_locked_by_somebody_else_loses_nothing(
    request_: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(replace(request_, trials=3))
    before = found(request_)
    monkeypatch.setattr(store, "PATIENCE_S", 1)
    with sqlite3.connect(tmp_path / "studies.db") as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UserError, match="locked"):
            run(request_)
        connection.rollback()
    assert found(request_) == before
    run(request_)
    assert len(rows(request_)) == 8


def test_a_killed_search_loses_no_finished_evaluation(request_: Request, tmp_path: Path) -> None:
    run(request_)
    program = (
        "import os, nas.store as s; from nas.commands.search import Request, run\n"
        "tell, told = s.tell, []\n"
        "def once(*a):\n    told.append(a)\n    if len(told) == 4: os._exit(9)\n    tell(*a)\n"
        f"s.tell = once; run(Request(**{asdict(replace(request_, study='killed'))}))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True).returncode == 9
    killed = replace(request_, study="killed")
    assert len(rows(killed)) == 3
    assert len(list((tmp_path / "nas-runs").glob("killed*/*/row.json"))) == 1
    run(killed)
    assert found(killed) == found(request_)
    assert not list((tmp_path / "nas-runs").glob("killed*/*/row.json"))


def test_a_search_killed_while_it_proposed_goes_on_as_if_it_had_not_been(request_: Request, tmp_path: Path) -> None:
    run(request_)
    killed = replace(request_, study="killed")
    program = (
        "import os, optuna; from nas.commands.search import Request, run\n"
        "suggest, calls = optuna.Trial.suggest_int, []\n"
        "def once(*a, **k):\n    calls.append(a)\n    if len(calls) == 11: os._exit(9)\n    return suggest(*a, **k)\n"
        f"optuna.Trial.suggest_int = once; run(Request(**{asdict(killed)}))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True).returncode == 9
    assert 0 < len(rows(killed)) < 8
    run(killed)
    assert found(killed) == found(request_)
