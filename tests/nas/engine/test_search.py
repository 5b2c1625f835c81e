"""Whole searches of toy tasks through `nas.search`."""

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
from nas.store.schema import CONFIG
from nas.workers.resources import Resources
from results.records.row import Row
from toy_searches import TOYS, Search, a_search, outcomes

TOPOLOGIES = "topology=resnet,dca,hyper"


@pytest.fixture
def search_args(search_args: dict[str, Any]) -> dict[str, Any]:
    """Arguments with a space that is counted quickly."""
    return {**search_args, "axis": TOPOLOGIES}


@pytest.fixture(scope="module")
def full_study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A search of eight trials; no test writes to its store."""
    return nas.search(**a_search(tmp_path_factory.mktemp("full")), axis=TOPOLOGIES)


@pytest.fixture
def storage_copy(full_study: Study, tmp_path: Path) -> str:
    """The URL of a copy of that store."""
    shutil.copytree(Path(full_study.storage.removeprefix("sqlite:///")).parent, tmp_path / "copy")
    return f"sqlite:///{tmp_path}/copy/studies.db"


def test_every_trial_is_distinct_and_within_the_budget(full_study: Study) -> None:
    assert len(full_study) == 8
    assert len({row.architecture for row in full_study.rows()}) == 8
    assert all(row.costs.params is not None and row.costs.params <= 3000 for row in full_study.rows())
    optuna_study = optuna.load_study(study_name="s", storage=open_storage(full_study.storage))
    for trial, row in zip(optuna_study.trials, full_study.rows(), strict=True):
        assert {"depth": row.architecture.depth, "heads": row.architecture.heads}.items() <= trial.params.items()
        assert trial.values == [row.metrics["accuracy"], row.costs.flops]


def test_same_seed_gives_same_study_also_after_resume(
    search: Search, store_url: Callable[[str], str], full_study: Study
) -> None:
    search(trials=3)
    assert outcomes(search()) == outcomes(full_study)
    assert outcomes(search(storage=store_url("other"), seed=1, trials=3)) != outcomes(full_study)[:3]


def test_known_rows_need_no_evaluation(
    search: Search, storage_copy: str, full_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nas.workers.pool.evaluate", lambda job: pytest.fail("it was evaluated"))
    repeat = search(study="again", storage=storage_copy)
    assert repeat.rows() == full_study.rows()
    assert len(nas.load("all", storage=storage_copy)) == 8


@pytest.mark.slow
def test_two_workers_give_the_rows_of_one(search: Search, full_study: Study) -> None:
    alone = {row.architecture: (row.metrics, row.test, row.costs) for row in full_study.rows()}
    parallel = search(resources=Resources(2))
    assert len(parallel) == 8
    both = {row.architecture: (row.metrics, row.test, row.costs) for row in parallel.rows()}
    assert set(alone) & set(both)
    assert all(alone[architecture] == both[architecture] for architecture in set(alone) & set(both))


def test_search_ends_without_untried_members(search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    small = {"space": "depth-heads", "arch": "depth=1,heads=1", "axis": ("depth=1,2", "heads=1,2")}
    study = search(**small, budget="params<=500", trials=1000)
    assert 0 < len(study) < 4
    *_, progress, notice = capsys.readouterr().err.splitlines()
    assert re.match(f"{len(study)}/1000 ", progress)
    assert not re.match(r"\d+/\d+ ", notice)


def test_recipe_is_searched_with_the_architecture(search: Search) -> None:
    small = {
        "space": "depth-heads",
        "arch": "depth=1,heads=1",
        "axis": ("depth=1,2", "heads=1,2", "recipe.penalty=0,0.1"),
    }
    study = search(**small, budget="", trials=8)
    assert len({(row.architecture, row.recipe["penalty"]) for row in study.rows()}) == 8
    assert {row.recipe["penalty"] for row in study.rows()} == {0, 0.1}


def front_identities(rows: list[Row]) -> set[str]:
    """The identities of rows that no other beats by two standard errors at no greater cost."""

    def beats(other: Row, row: Row) -> bool:
        upper_bound = row.metrics["accuracy"] + 2 * row.metrics["accuracy_se"]
        better, cheaper = other.metrics["accuracy"] - upper_bound, (row.costs.flops or 0) - (other.costs.flops or 0)
        return min(better, cheaper) >= 0 and max(better, cheaper) > 0

    return {row.identity() for row in rows if not any(beats(other, row) for other in rows)}


def networks_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "networks").glob("*")}


def test_save_models_keeps_all_networks_or_none(
    search: Search, tmp_path: Path, store_url: Callable[[str], str]
) -> None:
    rows = search(task=f"{TOYS}:Showing", trials=3, save_models="all").rows()
    assert networks_in(tmp_path / "store") == {row.identity() for row in rows}
    search(task=f"{TOYS}:Showing", trials=1, save_models="none", storage=store_url("none"))
    assert networks_in(tmp_path / "none") == set()


def test_networks_of_the_front_stay_also_after_resume(
    search: Search, search_args: dict[str, Any], tmp_path: Path
) -> None:
    arguments = {"task": f"{TOYS}:Showing"}
    first = search(**arguments, trials=4)
    assert networks_in(tmp_path / "store") == front_identities(first.rows())
    (identity,) = first.front()[-1].identities
    shape = next(str(row.architecture) for row in first.rows() if row.identity() == identity)
    nas.evaluate(arguments["task"], preset="smoke", arch=shape, storage=search_args["storage"])
    study = search(**arguments, trials=11)
    networks = networks_in(tmp_path / "store")
    assert networks == front_identities(study.rows()) | {identity}
    assert networks < {row.identity() for row in study.rows()}


def test_search_waits_for_a_server_at_its_end(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    load, calls = nas.api.load.load, list[str]()

    def fail_once(study: str, **options: Any) -> Any:
        calls.append(study)
        if len(calls) == 1:
            raise DisconnectionError("away")
        return load(study, **options)

    monkeypatch.setattr("nas.api.search.load", fail_once)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    assert len(search(trials=1)) == 1
    assert calls == ["s", "s"]


def test_impossible_storage_fails_before_counting(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.api.search.build_request", lambda *words, **more: pytest.fail("it was counted"))
    with raises("bad-syntax", option="--storage", value="foo"):
        search(storage="foo")
    with raises("unsupported", option="--storage", value="mysql"):
        search(storage="mysql://a/b")


def test_search_does_not_take_the_name_of_evaluations(search: Search, search_args: dict[str, Any]) -> None:
    arguments = {"preset": "smoke", "study": "s", "storage": search_args["storage"]}
    nas.evaluate(search_args["task"], **arguments)
    with raises("mismatch", option="--study", value="s"):
        search()
    nas.evaluate(search_args["task"], **arguments, seed=1)


def test_study_with_other_axes_or_settings_is_an_error(search: Search, storage_copy: str) -> None:
    with raises("mismatch", option="settings", value={"penalty": 0.5}, expected={}, study="s"):
        search(storage=storage_copy, settings="penalty=0.5")
    study = optuna.load_study(study_name="s", storage=storage_copy)
    config = study.user_attrs[CONFIG]
    config["axes"]["topology"].remove("dca")  # as if it had been installed later
    config["axes"]["depth"].append(99)
    study.set_user_attr(CONFIG, config)
    with raises("mismatch", option="axes", value={"topology": ["dca"]}, expected={"depth": [99]}, study="s"):
        search(storage=storage_copy)


@pytest.mark.usefixtures("search_args")
def test_front_names_its_store(
    full_study: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Study, "plot", lambda *arguments: None)
    print_front(full_study)
    output = " ".join(capsys.readouterr().out.split())
    assert f"nas results --study s --storage {full_study.storage}" in output


def test_edited_task_file_makes_another_study(search: Search, search_args: dict[str, Any], tmp_path: Path) -> None:
    file, neighbour = tmp_path / "edited.py", tmp_path / "edited_neighbour.py"
    file.write_text("import edited_neighbour\n" + Path(TOYS).read_text())
    neighbour.write_text("import edited_next\n")
    (tmp_path / "edited_next.py").touch()
    arguments: dict[str, Any] = {"task": f"{file}:Toy", "space": "depth-heads", "trials": 2}
    first = search(**arguments, study=None)
    assert search(**arguments, study=None).name == first.name
    names = {first.name}
    for edited in (file, neighbour, tmp_path / "edited_next.py"):
        edited.write_text(edited.read_text() + "\n# edited\n")
        names.add(search(**arguments, study=None).name)
    assert len(names) == 4
    with raises("mismatch", option="code", study=first.name):
        search(**arguments, study=first.name)
