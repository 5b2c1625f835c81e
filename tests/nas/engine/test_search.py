"""Whole searches of toy tasks, through the function that the command is."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy.exc import DisconnectionError

import nas
import nas.api.load
from expect import raises
from nas.cli.printers import print_front
from nas.report.study import Study
from nas.store.optuna_study import open_storage
from nas.store.store import CONFIG
from nas.workers.resources import Resources
from results.records.row import Row
from toy_searches import TOYS, Search, a_search, outcomes

TOPOLOGIES = "topology=resnet,dca,hyper"


@pytest.fixture
def asked(asked: dict[str, Any]) -> dict[str, Any]:
    """A space that is counted quickly."""
    return {**asked, "axis": TOPOLOGIES}


@pytest.fixture(scope="module")
def full_study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A search of eight trials, in a store that nothing more is written to."""
    return nas.search(**a_search(tmp_path_factory.mktemp("full")), axis=TOPOLOGIES)


@pytest.fixture
def storage_copy(full_study: Study, tmp_path: Path) -> str:
    """The storage of a copy."""
    shutil.copytree(Path(full_study.storage.removeprefix("sqlite:///")).parent, tmp_path / "copy")
    return f"sqlite:///{tmp_path}/copy/studies.db"


def test_every_trial_is_distinct_within_the_budget_and_recorded(full_study: Study) -> None:
    assert len(full_study) == 8
    assert len({row.architecture for row in full_study.rows()}) == 8
    assert all(row.costs.params is not None and row.costs.params <= 3000 for row in full_study.rows())
    recorded = optuna.load_study(study_name="s", storage=open_storage(full_study.storage))
    for trial, row in zip(recorded.trials, full_study.rows(), strict=True):
        assert {"depth": row.architecture.depth, "heads": row.architecture.heads}.items() <= trial.params.items()
        assert trial.values == [row.metrics["accuracy"], row.costs.flops]


def test_same_seed_gives_same_study_also_when_resumed(
    search: Search, elsewhere: Callable[[str], str], full_study: Study
) -> None:
    search(trials=3)
    assert outcomes(search()) == outcomes(full_study)
    assert outcomes(search(storage=elsewhere("other"), seed=1, trials=3)) != outcomes(full_study)[:3]


def test_known_rows_are_not_evaluated_again(
    search: Search, storage_copy: str, full_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nas.workers.pool.evaluate", lambda job: pytest.fail("it was evaluated"))
    again = search(study="again", storage=storage_copy)
    assert again.rows() == full_study.rows()
    assert len(nas.load("all", storage=storage_copy)) == 8


@pytest.mark.slow
def test_two_workers_give_the_rows_of_one(search: Search, full_study: Study) -> None:
    alone = {row.architecture: (row.metrics, row.test, row.costs) for row in full_study.rows()}
    parallel = search(resources=Resources(2))
    assert len(parallel) == 8
    both = {row.architecture: (row.metrics, row.test, row.costs) for row in parallel.rows()}
    assert set(alone) & set(both)
    assert all(alone[architecture] == both[architecture] for architecture in set(alone) & set(both))


def test_search_ends_when_all_within_the_budget_are_tried(search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    few = {"space": "depth-heads", "arch": "depth=1,heads=1", "axis": ("depth=1,2", "heads=1,2")}
    study = search(**few, budget="params<=500", trials=1000)
    assert 0 < len(study) < 4
    *_, progress, notice = capsys.readouterr().err.splitlines()
    assert re.match(f"{len(study)}/1000 ", progress)
    assert not re.match(r"\d+/\d+ ", notice)


def test_recipe_is_searched_with_the_architecture(search: Search) -> None:
    few = {
        "space": "depth-heads",
        "arch": "depth=1,heads=1",
        "axis": ("depth=1,2", "heads=1,2", "recipe.penalty=0,0.1"),
    }
    study = search(**few, budget="", trials=8)
    assert len({(row.architecture, row.recipe["penalty"]) for row in study.rows()}) == 8
    assert {row.recipe["penalty"] for row in study.rows()} == {0, 0.1}


def may_be_on_front(rows: list[Row]) -> set[str]:
    """The identities of rows that no other beats by two standard errors and at no greater cost."""

    def beats(other: Row, one: Row) -> bool:
        hoped = one.metrics["accuracy"] + 2 * one.metrics["accuracy_se"]
        better, cheaper = other.metrics["accuracy"] - hoped, (one.costs.flops or 0) - (other.costs.flops or 0)
        return min(better, cheaper) >= 0 and max(better, cheaper) > 0

    return {one.identity() for one in rows if not any(beats(other, one) for other in rows)}


def networks_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "networks").glob("*")}


def test_all_networks_or_none_are_kept(search: Search, tmp_path: Path, elsewhere: Callable[[str], str]) -> None:
    every = search(task=f"{TOYS}:Showing", trials=3, save_models="all").rows()
    assert networks_in(tmp_path / "store") == {row.identity() for row in every}
    search(task=f"{TOYS}:Showing", trials=1, save_models="none", storage=elsewhere("none"))
    assert networks_in(tmp_path / "none") == set()


def test_networks_of_the_front_are_kept_also_when_resumed(
    search: Search, asked: dict[str, Any], tmp_path: Path
) -> None:
    showing = {"task": f"{TOYS}:Showing"}
    first = search(**showing, trials=4)
    assert networks_in(tmp_path / "store") == may_be_on_front(first.rows())
    (adopted,) = first.front()[-1].identities
    shape = next(str(row.architecture) for row in first.rows() if row.identity() == adopted)
    nas.evaluate(showing["task"], preset="smoke", arch=shape, storage=asked["storage"])
    study = search(**showing, trials=11)
    networks = networks_in(tmp_path / "store")
    assert networks == may_be_on_front(study.rows()) | {adopted}
    assert networks < {row.identity() for row in study.rows()}


def test_server_that_is_away_at_the_end_is_waited_for(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    load, calls = nas.api.load.load, list[str]()

    def away_at_first(study: str, **options: Any) -> Any:
        calls.append(study)
        if len(calls) == 1:
            raise DisconnectionError("away")
        return load(study, **options)

    monkeypatch.setattr("nas.api.search.load", away_at_first)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    assert len(search(trials=1)) == 1
    assert calls == ["s", "s"]


def test_impossible_storage_is_refused_before_counting(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.api.search.build_request", lambda *words, **more: pytest.fail("it was counted"))
    with raises("bad-syntax", option="--storage", value="foo"):
        search(storage="foo")
    with raises("unsupported", option="--storage", value="mysql"):
        search(storage="mysql://a/b")


def test_search_does_not_take_the_name_of_evaluations(search: Search, asked: dict[str, Any]) -> None:
    evaluated = {"preset": "smoke", "study": "s", "storage": asked["storage"]}
    nas.evaluate(asked["task"], **evaluated)
    with raises("mismatch", option="--study", value="s"):
        search()
    nas.evaluate(asked["task"], **evaluated, seed=1)


def test_study_with_other_axes_or_settings_is_not_continued(search: Search, storage_copy: str) -> None:
    with raises("mismatch", option="settings", value={"penalty": 0.5}, expected={}, study="s"):
        search(storage=storage_copy, settings="penalty=0.5")
    made = optuna.load_study(study_name="s", storage=storage_copy)
    config = made.user_attrs[CONFIG]
    config["axes"]["topology"].remove("dca")  # which was installed later, as it were
    config["axes"]["depth"].append(99)
    made.set_user_attr(CONFIG, config)
    with raises("mismatch", option="axes", value={"topology": ["dca"]}, expected={"depth": [99]}, study="s"):
        search(storage=storage_copy)


@pytest.mark.usefixtures("asked")
def test_front_names_the_store_to_ask(
    full_study: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Study, "plot", lambda *arguments: None)
    print_front(full_study)
    said = " ".join(capsys.readouterr().out.split())
    assert f"nas results --study s --storage {full_study.storage}" in said
