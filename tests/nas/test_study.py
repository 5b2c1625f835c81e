"""A study as people hold it: rows, front, data frame, picture, notebook; and those of the version before."""

import json
import sqlite3
from pathlib import Path

import pytest
from matplotlib.colors import to_hex

import nas
from nas.colours import looks
from nas.picture import front_line
from nas.storage.store import Store
from nas.study import Study
from results import lines, table
from results.row import Direction
from results.standing import standings
from search_spaces.errors import UserError

TOY = f"{Path(__file__).parent / 'toy_tasks.py'}:Toy"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    storage = f"sqlite:///{tmp_path_factory.mktemp('study')}/studies.db"
    return nas.search(TOY, preset="smoke", trials=6, workers=1, study="mine", storage=storage)


def test_a_study_is_read_as_it_was_made(study: Study) -> None:
    again = nas.load("mine", storage=study.storage)
    assert again.rows() == study.rows()
    assert again.config == study.config
    assert nas.load(storage=study.storage).name == "mine"
    assert repr(again) == f"Study('mine', 6 rows, {study.storage!r})"


def test_a_front_is_of_architectures_with_all_their_seeds(study: Study) -> None:
    every = {row.identity(): row for row in study.rows()}
    found = study.standings()
    assert sorted(identity for one in found for identity in one.identities) == sorted(every)
    assert study.front() == [one for one in found if one.stands]
    assert [one.record["flops"] for one in found] == sorted(one.record["flops"] for one in found)
    for one in found:
        seeds = [every[identity].seed for identity in one.identities]
        assert len({every[identity].architecture for identity in one.identities}) == 1
        assert one.record["seeds"] == (seeds.count(1) or len(seeds))
        assert one.confirmed == (1 in seeds)
    assert sum(one.confirmed for one in found) == 1  # a quarter of six trials
    assert study.front("loss,params")
    with pytest.raises(UserError, match="accuracy"):
        study.front("acuracy")


@pytest.mark.parametrize(
    ("ways", "corners"),
    [
        ({"accuracy": "max", "flops": "min"}, [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.3)]),
        ({"accuracy": "max", "flops": "max"}, [(4, 0.05), (3, 0.3), (1, 0.3)]),
        ({"accuracy": "max"}, []),
        ({"accuracy": "max", "flops": "min", "params": "min"}, []),
    ],
)
def test_a_step_goes_from_its_corner_to_what_is_worse(
    ways: dict[str, Direction], corners: list[tuple[float, float]]
) -> None:
    accuracies = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.05}
    lines = [
        {"key": f"k{n}", "depth": n, "flops": n, "params": n, "accuracy": one, "seed": seed, "status": "complete"}
        for n, one in accuracies.items()
        for seed in range(6)
    ]
    found = standings(table.from_records(lines), ways)
    assert [(round(x), pytest.approx(y, abs=0.03)) for x, y, _ in front_line(found, ways)] == corners


def test_pandas_a_picture_and_a_notebook_have_it(study: Study, tmp_path: Path) -> None:
    frame = study.to_pandas()
    assert len(frame) == 6
    assert {"accuracy", "flops", "recipe_penalty", "test_accuracy"} <= set(frame.columns)
    figure = study.plot(tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    assert figure.axes[0].get_xlabel() == "flops"
    drawn = {to_hex(bars.lines[0].get_color()) for bars in figure.axes[0].containers}
    assert drawn == {look.colour for look in looks(row.architecture.topology for row in study.rows()).values()}
    for name, begins in (("front.svg", b"<?xml"), ("front.pdf", b"%PDF")):
        study.plot(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    with pytest.raises(UserError, match=r"\.png"):
        study.plot(tmp_path / "front.txt")
    html = study._repr_html_()
    assert html.count("<tr") >= 1 + len(study.front())
    assert "at_front" in html
    assert "<th>accuracy</th><td>0." in study.rows()[0]._repr_html_()
    assert "params" in nas.compare(TOY, arch=["depth=1", "depth=2"], preset="smoke")._repr_html_()


def test_rows_leave_and_come_back_as_json_lines(study: Study, tmp_path: Path) -> None:
    lines.write(study.rows(), tmp_path / "rows.jsonl")
    assert nas.load(source=tmp_path / "rows.jsonl").rows() == study.rows()
    assert len(nas.load(source=tmp_path / "rows.jsonl").front()) == len(study.front())


def test_several_studies_are_read_together_each_evaluation_once(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        nas.search(TOY, preset="smoke", trials=3, workers=1, study=name, storage=storage, seed=seed)
    nas.evaluate(TOY, preset="smoke", seed=5, storage=storage)
    assert len(nas.load("a,b", storage=storage)) == 3
    assert len(nas.load("a,c", storage=storage)) == 6
    assert len(nas.load("all", storage=storage)) == 7
    assert nas.load(storage=storage).name == "c"
    with pytest.raises(UserError, match="evaluations"):
        nas.load("a,evaluation", storage=storage)


def test_a_bad_row_is_named_and_the_others_are_read(study: Study, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    store = Store(storage, make=True)
    for row in study.rows():
        store.add(row, "mine")
    with sqlite3.connect(tmp_path / "studies.db") as connection:
        connection.execute("UPDATE nas_rows SET row = '{\"task\": 7}' WHERE id = 2")
        connection.execute("UPDATE nas_rows SET row = 'nonsense' WHERE id = 4")
    found = nas.load("mine", storage=storage)
    assert len(found) == 4
    assert [line.partition(":")[0] for line in found.bad] == ["study 'mine', row 2", "study 'mine', row 4"]


def test_a_study_of_the_version_before_is_read(tmp_path: Path) -> None:
    """Rows were then attributes of Optuna's trials; the schema is Optuna's."""
    from nas.storage.optuna_study import open_storage

    old = Path(__file__).parents[1] / "results" / "data" / "study_of_version_1.jsonl"
    texts = old.read_text().splitlines()
    storage = f"sqlite:///{tmp_path}/studies.db"
    open_storage(storage)
    settings = {
        "task": "digits-vit",
        "task_version": 1,
        "space": "joint",
        "base": "depth=4",
        "budget": "",
        "seed": 0,
        "objectives": {"accuracy": "max", "flops": "min"},
        "preset": "smoke",
        "sampler": "surrogate",
        "metrics": {"accuracy": "max", "loss": "min"},
        "baselines": {},
    }
    with sqlite3.connect(tmp_path / "studies.db") as connection:
        connection.execute("INSERT INTO studies (study_id, study_name) VALUES (1, 'old')")
        insert = "INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (1, 'settings', ?)"
        connection.execute(insert, (json.dumps(settings),))
        for number, text in enumerate(texts):
            connection.execute(
                "INSERT INTO trials (trial_id, number, study_id, state) VALUES (?, ?, 1, 'COMPLETE')", (number,) * 2
            )
            insert = "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (?, 'row', ?)"
            connection.execute(insert, (number, json.dumps(text)))
    found = nas.load(storage=storage)
    assert found.name == "old"
    assert len(found) == len(texts) > 0
    assert not found.bad
    assert found.front()
    assert found.rows()[0].metrics["accuracy"] == json.loads(texts[0])["validation"]["accuracy"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"study": "mein", "storage": "here"}, "mine"),
        ({"source": "nowhere.jsonl"}, "there is no file 'nowhere.jsonl'; unknown table"),
        ({"source": "stdlib-lm-topologie"}, "Did you mean 'stdlib-lm-topologies'"),
        ({"study": "mein", "storage": "here", "source": "tables"}, "mine"),
        ({"storage": "here", "source": "tables"}, "two sources"),
    ],
)
def test_what_is_not_there_is_said(study: Study, asked: dict[str, str], says: str) -> None:
    stored = {"storage": study.storage} if "storage" in asked else {}
    named = {name: text for name, text in asked.items() if name != "storage"}
    with pytest.raises(UserError, match=says):
        nas.load(**named, **stored)
