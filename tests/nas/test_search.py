"""The whole search on toy tasks, through the function that people call and the command is."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.asking import space_of
from nas.jobs import fresh_task, recipe_of
from nas.locks import only_writer
from nas.optuna_study import open_storage
from nas.study import Study
from results.row import Row
from search_spaces.errors import UserError

TOYS = Path(__file__).parent / "toy_tasks.py"
Search = Callable[..., Study]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a search asks for, each with a store of its own name: a store knows what was evaluated before."""
    monkeypatch.chdir(tmp_path)
    return {
        "task": f"{TOYS}:Toy",
        "budget": "params<=3k",
        "objectives": "accuracy,flops",
        "trials": 8,
        "preset": "smoke",
        "sampler": "random",
        "workers": 1,
        "study": "s",
        "storage": f"sqlite:///{tmp_path}/store/studies.db",
    }


@pytest.fixture
def search(asked: dict[str, Any]) -> Search:
    def run(**changes: Any) -> Study:
        return nas.search(**{**asked, **changes})

    return run


@pytest.fixture
def elsewhere(tmp_path: Path) -> Callable[[str], str]:
    """Another store."""
    return lambda name: f"sqlite:///{tmp_path}/{name}/studies.db"


def found(study: Study) -> list[tuple[object, ...]]:
    return [(row.architecture, row.status, dict(row.metrics), dict(row.test), row.costs) for row in study.rows()]


def rows(asked: dict[str, Any], **changes: Any) -> list[Row]:
    asked = {**asked, **changes}
    return nas.load(asked["study"], storage=asked["storage"]).rows()


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
    monkeypatch.setattr("nas.workers.evaluate", lambda job: pytest.fail("it was evaluated"))
    again = search(study="again")
    assert again.rows() == whole.rows()
    assert len(nas.load("all", storage=asked["storage"])) == 8


def test_an_interrupted_study_goes_on_as_if_it_had_not_been(
    search: Search,
    asked: dict[str, Any],
    tmp_path: Path,
    elsewhere: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOYS_EVALUATED", "0")
    whole = search()
    # The interrupted task is the same one by its settings: only what it does at its third evaluation differs.
    copy = tmp_path / "copy.py"
    copy.write_text(TOYS.read_text().replace("class Interrupted(Toy)", "class Toy_(Toy)"))
    halted = {"storage": elsewhere("halted"), "task": f"{copy}:Toy_"}
    with pytest.raises(KeyboardInterrupt):
        search(**halted)
    assert len(rows(asked, **halted)) == 2
    assert found(search(**halted)) == found(whole)


def test_two_workers_give_each_architecture_the_row_that_one_gives(
    search: Search, elsewhere: Callable[[str], str]
) -> None:
    alone = {row.architecture: (row.metrics, row.test, row.costs) for row in search().rows()}
    parallel = search(storage=elsewhere("parallel"), workers=2)
    assert len(parallel) == 8
    both = {row.architecture: (row.metrics, row.test, row.costs) for row in parallel.rows()}
    assert set(alone) & set(both)
    assert all(alone[architecture] == both[architecture] for architecture in set(alone) & set(both))


def test_a_trial_that_fails_in_any_way_is_a_row_with_its_reason(search: Search) -> None:
    study = search(task=f"{TOYS}:Stumbling", budget="", trials=40)
    reasons = {row.architecture.depth: str(row.error) for row in study.rows()}
    assert reasons[1].startswith("RuntimeError: a layer broke (")
    assert "toy_tasks.py, line " in reasons[1]
    assert reasons[2].startswith("OutOfMemoryError: CUDA out of memory")
    assert reasons[3].startswith("Diverged: loss is nan at step 7")
    assert reasons[6] == "Diverged: accuracy is nan"
    assert reasons[4] == "None"
    assert {row.status for row in study.rows()} == {"complete", "failed"}


def test_a_process_that_dies_fails_its_trial_and_not_the_search(search: Search) -> None:
    study = search(task=f"{TOYS}:Deadly", space="depth-heads", budget="params<=1k", trials=36, workers=2)
    assert len(study) > 5
    for row in study.rows():
        assert (row.status == "failed") == (row.architecture.depth == row.architecture.heads == 1)
        assert row.status == "complete" or "died" in str(row.error)


def test_an_exhausted_feasible_set_ends_the_search_and_says_so(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    study = search(space="depth-heads", budget="params<=1k", trials=1000)
    assert "every architecture within the budget has been tried" in capsys.readouterr().err
    assert 0 < len(study) < 36


def test_a_study_is_continued_only_with_its_own_settings(search: Search, asked: dict[str, Any]) -> None:
    search(trials=2)
    with pytest.raises(UserError, match=r"budget.*params<=3000.*--study"):
        search(budget="params<=4k")
    assert len(rows(asked)) == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"budget": "params<=10"}, "smallest"),
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
        ({"settings": "lr=1"}, "penalty"),
        ({"settings": "penalty=much"}, "penalty must be"),
        ({"settings": {"penalty": -1}}, "at least 0"),
        ({"settings": "penalty"}, "FIELD=VALUE"),
        ({"settings": "penalty=1,penalty=2"}, "twice"),
        ({"axis": "recipe.penaltee=1,2"}, "penalty"),
        ({"axis": "dept=1,2"}, "dept"),
    ],
)
def test_an_error_is_said_before_anything_is_trained(search: Search, change: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        search(**change)


def test_a_setting_changes_the_recipe_of_every_trial(search: Search) -> None:
    plain, hard = search(trials=3), search(trials=3, settings="penalty=0.02", study="hard")
    assert [row.recipe["penalty"] for row in hard.rows()] == [0.02] * 3
    for one, other in zip(plain.rows(), hard.rows(), strict=True):
        assert other.metrics["accuracy"] == pytest.approx(
            one.metrics["accuracy"] - 0.01 * len(one.architecture.topology)
        )
        assert one.identity() != other.identity()


def test_a_recipe_is_searched_as_architectures_are(search: Search) -> None:
    study = search(space="depth-heads", axis="recipe.penalty=0,0.1", budget="", trials=12)
    tried = {(row.architecture, row.recipe["penalty"]) for row in study.rows()}
    assert len(tried) == 12
    assert {penalty for _, penalty in tried} == {0, 0.1}


def test_an_axis_of_a_recipe_takes_what_its_field_takes() -> None:
    axes = ("recipe.betas=0.9:0.95,0.9:0.99", "recipe.precision=32-true,bf16-mixed", "recipe.batch=16,1.6e1")
    task: Any = fresh_task("digits-vit", None)
    with pytest.raises(UserError, match=r"value 1\.6e1 stands twice"):
        space_of(task, "depth-heads", "", "smoke", axes)
    space = space_of(task, "depth-heads", "", "smoke", (*axes[:2], "recipe.batch=1.6e1,3.2e1"))
    recipes = [recipe_of(task, "smoke", candidate.settings) for candidate in space]
    assert {recipe.betas for recipe in recipes} == {(0.9, 0.95), (0.9, 0.99)}
    assert {recipe.precision for recipe in recipes} == {"32-true", "bf16-mixed"}
    assert {repr(recipe.batch) for recipe in recipes} == {"16", "32"}
    with pytest.raises(UserError, match="betas must be 2 values"):
        space_of(task, "depth-heads", "", "smoke", ("recipe.betas=0.9:0.95:1",))


@pytest.mark.parametrize(("keep", "kept"), [("front", "front"), ("all", "all"), ("none", "none")])
def test_the_networks_that_are_kept(search: Search, tmp_path: Path, keep: str, kept: str) -> None:
    study = search(task=f"{TOYS}:Showing", trials=12, keep=keep)
    networks = {path.name for path in (tmp_path / "store" / "networks").glob("*")}
    wanted = {"front": study.front(), "all": study.rows(), "none": []}[kept]
    assert networks == {row.identity() for row in wanted}


def test_a_search_whose_first_trials_fail_goes_on(search: Search) -> None:
    study = search(task=f"{TOYS}:Stumbling", arch="depth=1", space="head-dim", budget="", trials=3)
    assert {row.status for row in study.rows()} == {"failed"}


def test_networks_are_let_go_of_in_a_second_go_too_but_not_those_of_others(
    search: Search, asked: dict[str, Any], tmp_path: Path
) -> None:
    showing = {"task": f"{TOYS}:Showing"}
    first = search(**showing, trials=4)
    adopted = first.front()[-1]
    shape = str(adopted.architecture)
    nas.evaluate(showing["task"], preset="smoke", arch=shape, storage=asked["storage"])
    study = search(**showing, trials=14)
    networks = {path.name for path in (tmp_path / "store" / "networks").glob("*")}
    assert networks == {row.identity() for row in study.front()} | {adopted.identity()}


@pytest.mark.parametrize("name", ["all", "a,b", " a", ""])
def test_a_name_that_no_study_can_have_is_said(search: Search, asked: dict[str, Any], name: str) -> None:
    if name:
        with pytest.raises(UserError, match="a study's name"):
            search(study=name)
    search(trials=1)
    with pytest.raises(UserError, match="is a search"):
        nas.evaluate(asked["task"], preset="smoke", study="s", storage=asked["storage"])


@pytest.mark.parametrize(
    "change", [{"trials": 0}, {"workers": -1}, {"seed": -1}, {"threads": 0}, {"keep": "frnot"}, {"trials": 1.5}]
)
def test_python_is_refused_what_the_command_line_is(search: Search, change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(change))):
        search(**change)


def test_a_setting_that_is_searched_is_not_set_as_well(search: Search) -> None:
    with pytest.raises(UserError, match="Leave one of them out"):
        search(settings="penalty=0.1", axis="recipe.penalty=0,0.1")


def test_a_store_that_is_no_database_is_named_and_left_alone(search: Search, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "studies.db").write_text("precious, and not a database at all " * 40)
    with pytest.raises(UserError, match=r"studies\.db"):
        search()
    assert "precious" in (tmp_path / "store" / "studies.db").read_text()


def test_a_second_coordinator_of_the_same_study_is_refused(search: Search, asked: dict[str, Any]) -> None:
    search(trials=1)
    with only_writer(asked["storage"], "s"), pytest.raises(UserError, match="another process"):
        search()


def test_a_store_locked_by_somebody_else_loses_nothing(
    search: Search, asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = found(search(trials=3))
    monkeypatch.setattr("nas.database.PATIENCE_S", 1)
    monkeypatch.setattr("nas.optuna_study.PATIENCE_S", 1)
    with sqlite3.connect(tmp_path / "store" / "studies.db") as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UserError, match="locked"):
            search()
        connection.rollback()
    assert found(nas.load("s", storage=asked["storage"])) == before
    assert len(search()) == 8


def killed(asked: dict[str, Any], folder: Path, program: str) -> None:
    """Run a search in a process that ends itself in the middle."""
    program = f"import os, optuna, nas, nas.store\n{program}\nnas.search(**{asked})"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 9, done.stderr


def test_a_killed_search_loses_no_finished_evaluation(
    search: Search, asked: dict[str, Any], tmp_path: Path, elsewhere: Callable[[str], str]
) -> None:
    whole = search()
    other = {"storage": elsewhere("killed")}
    dies = "    told.append(a)\n    if len(told) == 4: os._exit(9)\n    add(*a)\n"
    program = f"add, told = nas.store.Store.add, []\ndef once(*a):\n{dies}nas.store.Store.add = once"
    killed({**asked, **other}, tmp_path, program)
    assert len(rows(asked, **other)) == 3
    assert len(list((tmp_path / "killed").glob("unfinished/*/row.json"))) == 1
    assert found(search(**other)) == found(whole)
    assert not list((tmp_path / "killed").glob("unfinished/*"))


def test_a_search_killed_while_it_proposed_goes_on_as_if_it_had_not_been(
    search: Search, asked: dict[str, Any], tmp_path: Path, elsewhere: Callable[[str], str]
) -> None:
    whole = search()
    other = {"storage": elsewhere("killed")}
    dies = "    calls.append(a)\n    if len(calls) == 11: os._exit(9)\n    return suggest(*a, **k)\n"
    program = (
        f"suggest, calls = optuna.Trial.suggest_int, []\ndef once(*a, **k):\n{dies}optuna.Trial.suggest_int = once"
    )
    killed({**asked, **other}, tmp_path, program)
    assert 0 < len(rows(asked, **other)) < 8
    assert found(search(**other)) == found(whole)
