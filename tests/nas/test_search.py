"""The whole search on toy tasks, through the function that people call and the command is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy.exc import DisconnectionError

import nas
import nas.doors.load
from nas.commands.show import front
from nas.storage.optuna_study import open_storage
from nas.storage.store import CONFIG
from results.row import Row
from search_spaces.errors import UserError
from toy_searches import TOYS, Search, found


def test_every_trial_is_distinct_and_inside_the_budget(search: Search) -> None:
    study = search()
    assert len(study) == 8
    assert len({row.architecture for row in study.rows()}) == 8
    assert all(row.costs.params is not None and row.costs.params <= 3000 for row in study.rows())


def test_what_optuna_recorded_is_what_was_evaluated(search: Search, asked: dict[str, Any]) -> None:
    import optuna

    study = search()
    recorded = optuna.load_study(study_name="s", storage=open_storage(asked["storage"]))
    for trial, row in zip(recorded.trials, study.rows(), strict=True):
        assert {"depth": row.architecture.depth, "heads": row.architecture.heads}.items() <= trial.params.items()
        assert trial.values == [row.metrics["accuracy"], row.costs.flops]


def test_the_same_seed_gives_the_same_study_also_in_two_goes(search: Search, elsewhere: Callable[[str], str]) -> None:
    whole = search()
    search(storage=elsewhere("again"), trials=3)
    assert found(search(storage=elsewhere("again"))) == found(whole)
    assert found(search(storage=elsewhere("other"), seed=1)) != found(whole)


def test_what_the_store_knows_is_not_evaluated_again(
    search: Search, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = search()
    monkeypatch.setattr("nas.workers.workers.evaluate", lambda job: pytest.fail("it was evaluated"))
    again = search(study="again")
    assert again.rows() == whole.rows()
    assert len(nas.load("all", storage=asked["storage"])) == 8


def test_two_workers_give_each_architecture_the_row_that_one_gives(
    search: Search, elsewhere: Callable[[str], str]
) -> None:
    alone = {row.architecture: (row.metrics, row.test, row.costs) for row in search().rows()}
    parallel = search(storage=elsewhere("parallel"), workers=2)
    assert len(parallel) == 8
    both = {row.architecture: (row.metrics, row.test, row.costs) for row in parallel.rows()}
    assert set(alone) & set(both)
    assert all(alone[architecture] == both[architecture] for architecture in set(alone) & set(both))


def test_an_exhausted_feasible_set_ends_the_search_and_says_so(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    study = search(space="depth-heads", budget="params<=1k", trials=1000)
    assert "every architecture within the budget has been tried" in capsys.readouterr().err
    assert 0 < len(study) < 36


def test_a_recipe_is_searched_as_architectures_are(search: Search) -> None:
    study = search(space="depth-heads", axis="recipe.penalty=0,0.1", budget="", trials=12)
    tried = {(row.architecture, row.recipe["penalty"]) for row in study.rows()}
    assert len(tried) == 12
    assert {penalty for _, penalty in tried} == {0, 0.1}


def may_be_on_front(rows: list[Row]) -> set[str]:
    """The identities of rows that no other beats by two standard errors and at no greater cost."""

    def beats(other: Row, one: Row) -> bool:
        hoped = one.metrics["accuracy"] + 2 * one.metrics["accuracy_se"]
        better, cheaper = other.metrics["accuracy"] - hoped, (one.costs.flops or 0) - (other.costs.flops or 0)
        return min(better, cheaper) >= 0 and max(better, cheaper) > 0

    return {one.identity() for one in rows if not any(beats(other, one) for other in rows)}


@pytest.mark.parametrize(("keep", "kept"), [("front", "front"), ("all", "all"), ("none", "none")])
def test_the_networks_that_are_kept(search: Search, tmp_path: Path, keep: str, kept: str) -> None:
    study = search(task=f"{TOYS}:Showing", trials=12, keep=keep)
    networks = {path.name for path in (tmp_path / "store" / "networks").glob("*")}
    every = {row.identity() for row in study.rows()}
    assert networks == {"front": may_be_on_front(study.rows()), "all": every, "none": set()}[kept]
    assert kept != "front" or networks < every


def test_networks_are_let_go_of_in_a_second_go_too_but_not_those_of_others(
    search: Search, asked: dict[str, Any], tmp_path: Path
) -> None:
    showing = {"task": f"{TOYS}:Showing"}
    first = search(**showing, trials=4)
    (adopted,) = first.front()[-1].identities
    shape = next(str(row.architecture) for row in first.rows() if row.identity() == adopted)
    nas.evaluate(showing["task"], preset="smoke", arch=shape, storage=asked["storage"])
    study = search(**showing, trials=14)
    networks = {path.name for path in (tmp_path / "store" / "networks").glob("*")}
    assert networks == may_be_on_front(study.rows()) | {adopted}


def test_a_server_that_is_away_as_a_search_ends_is_waited_for(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    load, calls = nas.doors.load.load, list[str]()

    def away_at_first(study: str, **options: Any) -> Any:
        calls.append(study)
        if len(calls) == 1:
            raise DisconnectionError("away")
        return load(study, **options)

    monkeypatch.setattr("nas.doors.search.load", away_at_first)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    assert len(search(trials=1)) == 1
    assert calls == ["s", "s"]


def test_a_storage_that_can_be_none_is_refused_before_anything_is_counted(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nas.asked_search.ask_search", lambda *words, **more: pytest.fail("it was counted"))
    for storage in ("foo", "mysql://a/b"):
        with pytest.raises(UserError, match="--storage must be"):
            search(storage=storage)


def test_a_search_does_not_take_the_name_of_evaluations(search: Search, asked: dict[str, Any]) -> None:
    evaluated = {"preset": "smoke", "study": "s", "storage": asked["storage"]}
    nas.evaluate(asked["task"], **evaluated)
    with pytest.raises(UserError, match=r"study 's' holds evaluations, and is no search\. Give another --study\."):
        search()
    nas.evaluate(asked["task"], **evaluated, seed=1)


def test_of_axes_only_the_values_are_named_that_differ(search: Search, asked: dict[str, Any]) -> None:
    search(trials=1)
    made = optuna.load_study(study_name="s", storage=asked["storage"])
    config = made.user_attrs[CONFIG]
    config["axes"]["topology"].remove("dca")  # which was installed later, as it were
    config["axes"]["depth"].append(99)
    made.set_user_attr(CONFIG, config)
    with pytest.raises(UserError, match=r"was made with axes depth=\[99\], got topology=\['dca'\]\. Give another"):
        search(trials=2)


def test_other_settings_are_named_where_there_were_none(search: Search) -> None:
    search(trials=1)
    with pytest.raises(UserError, match=r"with settings none, got penalty=0.5\. Give another"):
        search(trials=1, settings="penalty=0.5")


def test_the_hint_names_the_store(search: Search, asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    front(search(trials=1))
    said = " ".join(capsys.readouterr().out.split())
    assert f"ask more with: nas results --study s --storage {asked['storage']}" in said
