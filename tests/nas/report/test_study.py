"""A study: rows, front, data frame, picture, notebook."""

import sqlite3
from pathlib import Path

import pytest
from matplotlib.colors import to_hex

import nas
from expect import raises, warns
from grouped import grouped
from nas.report.axes import front_corners
from nas.report.colors import topology_styles
from nas.report.plots import save_figure
from nas.report.study import Study
from nas.store.store import Store
from nas.workers.resources import Resources
from results.records import jsonl, table
from results.records.row import Direction
from results.stats.architecture_summary import summarize
from search_spaces.support.errors import Kind
from toy_searches import TOY


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    storage = f"sqlite:///{tmp_path_factory.mktemp('study')}/studies.db"
    return nas.search(TOY, preset="smoke", trials=6, resources=Resources(1), study="mine", storage=storage)


def test_loaded_study_equals_that_of_the_search(study: Study) -> None:
    copy = nas.load("mine", storage=study.storage)
    assert copy.rows() == study.rows()
    assert copy.config == study.config
    assert nas.load(storage=study.storage).name == "mine"
    assert repr(copy) == f"Study('mine', 6 rows, {study.storage!r})"


def test_front_is_of_architectures_with_all_their_seeds(study: Study) -> None:
    rows = {row.identity(): row for row in study.rows()}
    summaries = study.summaries()
    assert sorted(identity for summary in summaries for identity in summary.identities) == sorted(rows)
    assert study.front() == [summary for summary in summaries if summary.on_front]
    assert [summary.record["flops"] for summary in summaries] == sorted(
        summary.record["flops"] for summary in summaries
    )
    for summary in summaries:
        seeds = [rows[identity].seed for identity in summary.identities]
        assert len({rows[identity].architecture for identity in summary.identities}) == 1
        assert summary.record["seeds"] == (seeds.count(1) or len(seeds))
        assert summary.is_held_out == (1 in seeds)
    assert sum(summary.is_held_out for summary in summaries) == 1  # a quarter of six trials
    assert study.front("loss,params")
    with raises("unknown-name", option="objective", value="acuracy", nearest="accuracy"):
        study.front("acuracy")


def test_notebook_names_the_next_step_of_a_search(study: Study) -> None:
    html = study._repr_html_()
    assert f"nas.load_network(&#x27;mine&#x27;, task=&#x27;{TOY}&#x27;, storage=&#x27;{study.storage}&#x27;)" in html


LINES: list[tuple[dict[str, Direction], list[tuple[float, float]]]] = [
    ({"accuracy": "max", "flops": "min"}, [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.3)]),
    ({"accuracy": "max", "flops": "max"}, [(4, 0.05), (3, 0.3), (1, 0.3)]),
    ({"accuracy": "max"}, []),
    ({"accuracy": "max", "flops": "min", "params": "min"}, []),
]


def test_line_of_a_front_steps_towards_worse_values() -> None:
    accuracies = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.05}
    lines = [
        {"key": f"k{n}", "depth": n, "flops": n, "params": n, "accuracy": accuracy, "seed": seed, "status": "complete"}
        for n, accuracy in accuracies.items()
        for seed in range(6)
    ]
    with grouped() as case:
        for directions, corners in LINES:
            with case(str(directions)):
                summaries = summarize(table.from_records(lines), directions)
                assert [
                    (round(x), pytest.approx(y, abs=0.03)) for x, y, _ in front_corners(summaries, directions)
                ] == corners


def test_study_as_data_frame_picture_and_notebook(study: Study, tmp_path: Path) -> None:
    frame = study.to_pandas()
    assert len(frame) == 6
    assert {"accuracy", "flops", "recipe_penalty", "test_accuracy"} <= set(frame.columns)
    figure = study.plot(tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    assert figure.axes[0].get_xlabel() == "flops"
    colors = {to_hex(bars.lines[0].get_color()) for bars in figure.axes[0].containers}
    assert colors == {
        look.color for look in topology_styles(row.architecture.topology for row in study.rows()).values()
    }
    for name, begins in (("front.svg", b"<?xml"), ("front.pdf", b"%PDF")):
        save_figure(figure, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    with raises("unsupported", path=str(tmp_path / "front.txt"), choices=(".png", ".pdf", ".svg")):
        study.plot(tmp_path / "front.txt")
    assert Study("one", "", study.rows()[:1]).plot().axes[0].get_xscale() == "linear"  # and there is no re-evaluation
    html = study._repr_html_()
    assert html.count("<tr") >= 1 + len(study.front())
    assert "p_front" in html
    assert "<th>accuracy</th><td>0." in study.rows()[0]._repr_html_()
    assert "params" in nas.compare(TOY, arch=["depth=1", "depth=2"], preset="smoke")._repr_html_()


def test_rows_survive_a_round_trip_through_json_lines(study: Study, tmp_path: Path) -> None:
    jsonl.write(study.rows(), tmp_path / "rows.jsonl")
    assert nas.load(source=tmp_path / "rows.jsonl").rows() == study.rows()
    assert len(nas.load(source=tmp_path / "rows.jsonl").front()) == len(study.front())


def test_several_studies_are_loaded_together_without_repeats(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        nas.search(
            TOY,
            space="depth-heads",
            preset="smoke",
            trials=1,
            resources=Resources(1),
            study=name,
            storage=storage,
            seed=seed,
        )
    nas.evaluate(TOY, preset="smoke", seed=5, storage=storage)
    assert len(nas.load("a,b", storage=storage)) == 1
    assert len(nas.load("a,c", storage=storage)) == 2
    assert len(nas.load("all", storage=storage)) == 3
    assert nas.load(storage=storage).name == "c"
    with raises("unknown-name", option="study", value="evaluation", nearest="evaluations"):
        nas.load("a,evaluation", storage=storage)


def test_broken_rows_give_notes_and_the_others_are_read(study: Study, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    store = Store(storage, make=True)
    for row in study.rows():
        store.add(row, "mine")
    with sqlite3.connect(tmp_path / "studies.db") as connection:
        connection.execute("UPDATE nas_rows SET row = '{\"task\": 7}' WHERE id = 2")
        connection.execute("UPDATE nas_rows SET row = 'nonsense' WHERE id = 4")
    with warns("skipped", study="mine"):
        loaded_study = nas.load("mine", storage=storage)
    assert len(loaded_study) == 4
    assert [line.partition(":")[0] for line in loaded_study.unreadable] == [
        "study 'mine', row 2",
        "study 'mine', row 4",
    ]


def test_unknown_studies_and_sources_are_errors(study: Study) -> None:
    storage = {"storage": study.storage}
    mistakes: list[tuple[dict[str, str], Kind, dict[str, str]]] = [
        ({"study": "mein"} | storage, "unknown-name", {"option": "study", "value": "mein", "nearest": "mine"}),
        ({"source": "nowhere.jsonl"}, "unknown-name", {"option": "table", "value": "nowhere.jsonl"}),
        ({"source": "stdlib-lm-topologie"}, "unknown-name", {"nearest": "stdlib-lm-topologies"}),
        (
            {"study": "mein", "source": "stdlib-lm-topologies"} | storage,
            "unknown-name",
            {"option": "study", "value": "mein"},
        ),
        ({"source": "tables"} | storage, "conflict", {"option": "--from", "excludes": "--storage"}),
    ]
    with grouped() as case:
        for arguments, kind, fields in mistakes:
            with case(str(arguments)), raises(kind, **fields):
                nas.load(**arguments)
