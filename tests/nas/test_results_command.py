"""`nas results`: fronts, knees, best architectures, means and SQL over studies and files."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nas
from expect import raises
from grouped import grouped
from nas import report
from nas.commands.results import query_rows
from nas.options import Format
from nas.storage.store import Store
from nas.study import Study
from results import export, lines, sources, table
from results.costs import Costs
from results.parquet import ParquetTable
from results.row import Row
from search_spaces.errors import Kind
from toy_rows import LITTLE, a_row

Ask = Callable[..., list[dict[str, Any]]]

SHAPES = [(1, "resnet", 0.5), (2, "resnet", 0.7), (3, "resnet", 0.75), (1, "rmt", 0.6), (2, "rmt", 0.4)]


def rows(**changes: Any) -> list[Row]:
    return [
        a_row(
            architecture=replace(LITTLE, depth=depth, topology=topology),
            seed=seed,
            costs=Costs(params=1000 * depth, macs=10_000 * depth, flops=20_000 * depth),
            metrics={"accuracy": accuracy + 0.01 * seed, "accuracy_se": 0.001},
            **changes,
        )
        for depth, topology, accuracy in SHAPES
        for seed in (0, 1)
    ]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    url = f"sqlite:///{tmp_path}/studies.db"
    store = Store(url, make=True)
    for row in rows():
        store.add(row, "s")
    return nas.load("s", storage=url)


@pytest.fixture
def ask(study: Study, capsys: pytest.CaptureFixture[str]) -> Ask:
    """What a question to the study prints as JSON."""

    def of(asked: Study = study, **question: Any) -> list[dict[str, Any]]:
        query_rows(asked, **question, format=Format.JSON)
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return found

    return of


def headings(out: str) -> dict[str, list[int]]:
    """Task -> the numbers in the heading of its table."""
    found = re.findall(r"^(any|other): (.*)$", out, re.MULTILINE)
    return {task: [*map(int, re.findall(r"\d+", rest))] for task, rest in found}


def only_line(out: str) -> list[int]:
    """The numbers of the only line that was printed."""
    (line,) = out.splitlines()
    return [*map(int, re.findall(r"\d+", line))]


def test_budget_bounds_rows(ask: Ask) -> None:
    assert {row["depth"] for row in ask(budget=["params<=2k"])} == {1, 2}
    assert {row["depth"] for row in ask(budget=["1.5k<=params<=2k"], where="accuracy > 0.5 or depth = 1")} == {2}
    assert {row["depth"] for row in ask(budget=["flops>=50k"])} == {3}


def test_knee_is_one_row_of_the_front(ask: Ask) -> None:
    front = ask(pareto="accuracy,flops")
    assert [(row["depth"], row["topology"]) for row in ask(pareto="accuracy,flops", knee=True)] == [(2, "resnet")]
    assert len(front) == 3
    assert ask(pareto="min accuracy, max flops") != front


def test_best_orders_architectures_and_gives_one_per_group(ask: Ask) -> None:
    found = ask(best="accuracy")
    assert [(row["topology"], row["depth"]) for row in found] == [
        ("resnet", 3), ("resnet", 2), ("rmt", 1), ("resnet", 1), ("rmt", 2),
    ]  # fmt: skip
    assert [row["accuracy"] for row in found] == pytest.approx([0.755, 0.705, 0.605, 0.505, 0.405])
    assert ask(best="accuracy", limit=1) == found[:1]
    assert [(row["topology"], row["depth"]) for row in ask(best="accuracy", by="topology")] == [
        ("resnet", 3),
        ("rmt", 1),
    ]
    assert ask(best="accuracy", by="topology", budget=["params<=1k"])[0]["topology"] == "rmt"
    assert ask(best="min accuracy")[0] == {**found[-1], "chance": 1.0}


def test_groups_have_means(ask: Ask) -> None:
    found = {row["topology"]: row for row in ask(by="topology")}
    assert found["resnet"]["n"] == 6
    assert found["resnet"]["accuracy"] == pytest.approx((0.505 + 0.705 + 0.755) / 3)
    assert found["rmt"]["params"] == 1500


def test_sql_is_asked_of_rows_that_meet_the_condition(ask: Ask) -> None:
    question = "SELECT topology, count(*) AS n FROM rows GROUP BY topology ORDER BY n DESC"
    assert ask(sql=question, where="depth > 1") == [{"topology": "resnet", "n": 4}, {"topology": "rmt", "n": 2}]


def test_terminal_shows_one_table_per_task(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    other = [replace(row, task="other", metrics={"loss": 1.0}, directions={"loss": "min"}) for row in rows()[:2]]
    both = Study("both", "", [*rows(), *other])
    query_rows(both, by="topology")
    assert headings(capsys.readouterr().out) == {"any": [2, 10], "other": [1, 2]}
    query_rows(both, best="accuracy")
    out = capsys.readouterr().out
    assert "chance" in out
    assert "0.755±0.0" in out
    assert "other" not in out
    query_rows(both, where="task = 'other'")
    assert "loss" in capsys.readouterr().out  # whose first row's task has accuracy
    query_rows(study, where="depth = 1")
    out, err = capsys.readouterr()
    assert re.findall(r"\d+", out.splitlines()[0]) == ["4", "10"]
    assert re.findall(r"--\w+", err) == ["--best", "--by"]


def test_means_over_several_recipes_name_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    recipes = [replace(row, recipe={"epochs": 20 + row.seed, "lr": 0.1}) for row in rows()]
    query_rows(Study("both", "", recipes), by="topology")
    err = capsys.readouterr().err
    assert "epochs (20, 21)" in err
    assert "seed" not in err
    query_rows(Study("both", "", recipes), by="topology,recipe_epochs")
    query_rows(Study("both", "", recipes), best="accuracy", by="topology")
    assert "epochs" not in capsys.readouterr().err


def test_columns_without_values_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    other = [replace(row, task="other", metrics={"loss": 1.0}, directions={"loss": "min"}) for row in rows()[:2]]
    query_rows(Study("both", "", [*rows(), *other]), by="topology")
    _, out = capsys.readouterr().out.split("other: ")
    assert "loss" in out
    assert "accuracy" not in out


def test_front_is_ordered_by_cost_by_default(ask: Ask) -> None:
    flops = [one["flops"] for one in ask(pareto="accuracy,flops")]
    assert flops == sorted(flops)
    assert [one["flops"] for one in ask(pareto="accuracy,flops", order_by="-flops")] == flops[::-1]
    with raises("duplicate", option="column", value="flops"):
        ask(pareto="flops,flops")


def test_terminal_shows_the_ten_best_per_task(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first = rows()[0]
    many = [replace(first, architecture=replace(first.architecture, hidden=8 + i)) for i in range(12)]
    both = Study("both", "", [*many, *(replace(row, task="other") for row in many[:3])])

    def shown(**question: Any) -> dict[str, int]:
        query_rows(both, best="accuracy", **question)
        return {task: numbers[0] for task, numbers in headings(capsys.readouterr().out).items()}

    query_rows(both, best="accuracy")
    assert headings(capsys.readouterr().out) == {"any": [10, 12, 12], "other": [3, 3]}
    assert shown(limit=11)["any"] == 11
    assert shown(limit=2) == {"any": 2, "other": 2}
    assert shown(columns="key,accuracy")["other"] == 3
    assert shown(order_by="-params")["any"] == 12
    assert shown(by="hidden")["any"] == 12
    query_rows(both, best="accuracy", format=Format.CSV, output=tmp_path / "best.csv")
    assert len((tmp_path / "best.csv").read_text().splitlines()) == 16
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path}/best.csv" in said


def test_study_without_rows_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    query_rows(Study("none", "", []))
    assert only_line(capsys.readouterr().out) == [0, 0]


def test_files_are_asked_together_with_a_study(study: Study, ask: Ask, tmp_path: Path) -> None:
    third = [replace(row, seed=2) for row in rows()[::2]]
    lines.write(third, tmp_path / "rows.jsonl.gz")
    export.write(table.from_rows([replace(row, seed=3) for row in third]), "parquet", tmp_path / "rows.parquet")
    files = [tmp_path / "rows.jsonl.gz", tmp_path / "rows.parquet"]
    alone, both = nas.load(source=files), nas.load("s", storage=study.storage, source=files)
    assert {row["n"] for row in ask(alone, by="key")} == {2}
    assert {row["n"] for row in ask(both, by="key")} == {4}
    assert len(both.rows()) == 15
    with raises("unsupported", option="--format", value="jsonl"):
        query_rows(both, format=Format.JSONL)
    with raises("missing-value", option="column", value="accuracy", choices=("max accuracy", "min accuracy")):
        query_rows(nas.load(source=files[1]), best="accuracy")
    assert ask(nas.load(source=files[1]), best="max accuracy")[0]["depth"] == 3


def test_file_of_any_columns_is_asked(tmp_path: Path, ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "theirs.csv").write_text("model,score\na,1\nb,2\n")
    theirs = nas.load(source=tmp_path / "theirs.csv")
    query_rows(theirs)
    assert re.findall(r"\d+", capsys.readouterr().out.splitlines()[0]) == ["2", "2"]
    assert ask(theirs, pareto="max score") == [{"model": "b", "score": 2}]
    assert ask(theirs, by="model", limit=1) == [{"model": "a", "n": 1, "score": 1, "score_se": None}]


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"where": "DEPTH < 3 or error = 'so'"},
    {"budget": ["flops<=50k"], "order_by": "-seed"},
    {"pareto": "max accuracy,flops", "knee": True},
    {"best": "max accuracy", "by": "topology"},
    {"by": "topology,depth"},
    {"sql": "SELECT depth, count(*) AS n FROM rows GROUP BY depth ORDER BY depth"},
    {"columns": "seed,commit", "order_by": "accuracy desc"},
    {"columns": "all", "limit": 1},
]


def test_answer_from_some_columns_of_parquet_equals_that_from_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mixed = table.from_rows([*rows(), *rows(preset="full", error="so", recipe={"lr": 0.5})])
    export.write(mixed, "parquet", tmp_path / "theirs.parquet")
    theirs = nas.load(source=tmp_path / "theirs.parquet")
    with grouped() as case:
        for question in QUESTIONS:
            with case(str(question)):
                query_rows(theirs, **question)
                projected = capfd.readouterr()
                with monkeypatch.context() as patch:
                    patch.setattr("nas.commands.results._asked", lambda study, *_: study.column_names)
                    query_rows(theirs, **question)
                assert capfd.readouterr() == projected


def test_columns_not_asked_for_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "more.csv").write_text("model,score\na,1\n")
    export.write(table.from_records([{"model": "b", "score": 2, "other": 3}]), "parquet", tmp_path / "theirs.parquet")
    theirs = nas.load(source=[tmp_path / "more.csv", tmp_path / "theirs.parquet"])
    read: list[str] = []
    select = ParquetTable.select
    monkeypatch.setattr(ParquetTable, "select", lambda of, names: [read.extend(names), select(of, names)][1])
    query_rows(theirs, pareto="max score", columns="model")
    query_rows(theirs, where="score > 1", order_by="score", columns="model")
    assert {*read} == {"model", "score"}
    assert theirs.select(["other"])["other"].to_pylist() == [None, 3]
    assert theirs.select([]).num_rows == 2


def test_measured_columns_of_a_file_have_means(study: Study, tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "theirs.csv").write_text("topology,score,score_se,seed,recipe_lr\na,1,0.1,0,1\na,3,0.1,1,1\n")
    theirs = nas.load(source=tmp_path / "theirs.csv")
    assert ask(theirs, by="topology") == [{"topology": "a", "n": 2, "score": 2.0, "score_se": 1.0}]
    both = Study("both", "", study.rows(), flat=sources.read(tmp_path / "theirs.csv").flat)
    of_topology = {row["topology"]: row for row in ask(both, by="topology")}
    assert of_topology["a"]["score"] == 2.0
    assert of_topology["rmt"]["accuracy"] == pytest.approx(0.505)
    assert "measure_seconds" not in of_topology["rmt"]


def test_condition_that_no_row_meets_prints_one_line(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    questions: list[dict[str, Any]] = [
        {"where": "1=0"}, {"where": "1=0", "by": "topology"}, {"best": "accuracy", "where": "depth > 9"}
    ]  # fmt: skip
    for question in questions:
        query_rows(study, **question)
        assert only_line(capsys.readouterr().out) == [0, 10], question


def test_shipped_tables_are_asked_by_name(ask: Ask) -> None:
    found = ask(nas.load(source="tables"), by="topology")
    assert {row["task"] for row in found} >= {"stdlib-lm", "lra-listops"}
    assert {row["topology"] for row in ask(nas.load(source="stdlib-lm-topologies"), by="topology")} >= {"rmt", "hyper"}


def test_rows_are_written_as_json_lines(study: Study, tmp_path: Path) -> None:
    query_rows(study, where="depth = 3", format=Format.JSONL, output=tmp_path / "rows.jsonl")
    assert lines.read(tmp_path / "rows.jsonl")[0] == [row for row in study.rows() if row.architecture.depth == 3]


def test_csv_has_the_columns_asked_for(study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query_rows(study, best="accuracy", columns="topology,chance", format=Format.CSV)
    assert next(iter(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == {"topology": "resnet", "chance": "1"}


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"knee": True}, "missing-value", {"option": "--pareto", "needs": "--knee"}),
    ({"pareto": "accuracy", "best": "accuracy"}, "conflict", {"option": "--pareto", "excludes": "--best"}),
    ({"by": "depth", "sql": "SELECT 1"}, "conflict", {"option": "--by", "excludes": "--sql"}),
    ({"by": "depth,depth"}, "duplicate", {"option": "--by", "value": "depth,depth"}),
    ({"best": "accuracy", "by": "seed"}, "conflict", {"option": "--by", "value": "seed"}),
    ({"pareto": ""}, "missing-value", {"option": "--pareto", "value": ""}),
    ({"best": "acuracy"}, "unknown-name", {"option": "objective", "value": "acuracy", "nearest": "accuracy"}),
    ({"best": "max acuracy"}, "unknown-name", {"option": "column", "value": "acuracy"}),
    ({"by": "topolgy"}, "unknown-name", {"option": "column", "value": "topolgy", "nearest": "topology"}),
    ({"budget": ["parms<=1k"]}, "unknown-name", {"value": "parms", "nearest": "params"}),
    ({"best": "accuracy", "format": Format.JSONL}, "unsupported", {"option": "--format", "value": "jsonl"}),
    ({"columns": "depth", "format": Format.JSONL}, "conflict", {"option": "--columns", "excludes": "--format"}),
    ({"where": "true) or (true", "budget": ["flops<=1"]}, "bad-syntax", {"value": "true) or (true"}),
    ({"sql": "select '99999-01-01'::date d"}, "out-of-range", {}),
    ({"sql": "select '\ud800'"}, "bad-syntax", {}),
]


def test_impossible_questions_are_refused(study: Study) -> None:
    with grouped() as case:
        for question, kind, fields in MISTAKES:
            with case(str(question)), raises(kind, **fields):
                query_rows(study, **question)


def test_exported_row_beside_its_original_counts_once(study: Study, tmp_path: Path) -> None:
    export.write(study.table, "parquet", tmp_path / "same.parquet")
    (tmp_path / "other.csv").write_text("depth,loss\n9,0.5\n")
    lines.write(study.rows(), tmp_path / "rows.jsonl")
    together = nas.load(source=[str(tmp_path / one) for one in ("rows.jsonl", "same.parquet", "other.csv")])
    assert len(together.table) == len(study.rows()) + 1
    assert together.table["status"].to_pylist()[-1] == "complete"


def test_huge_numbers_nan_and_columns_of_files_are_answered(ask: Ask, tmp_path: Path) -> None:
    ask(sql="select 18446744073709551615::ubigint as huge")
    ask(sql="select 'nan'::float as none")
    (tmp_path / "times.csv").write_text("latency_ms\n4.5\n5.5\n")
    assert ask(nas.load(source=tmp_path / "times.csv"), budget=["latency_ms<=5.1"]) == [{"latency_ms": 4.5}]


def test_written_answer_is_shown_with_its_metric(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for best in ("accuracy", None):
        file = tmp_path / f"{best}.parquet"
        query_rows(study, best=best, by="topology", format=Format.PARQUET, output=file)
        query_rows(nas.load(source=file))
        out = capsys.readouterr().out
        (error,) = {one["accuracy_se"] for one in nas.load(source=file).table.to_pylist()[:1]}
        assert "accuracy" in out, best
        assert f"±{error:.3f}" in out, best


def test_metrics_of_a_file_of_columns_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    export.write(table.from_rows(rows(speeds={"weight": 2.5})), "csv", tmp_path / "theirs.csv")
    query_rows(nas.load(source=tmp_path / "theirs.csv"))
    out = capsys.readouterr().out
    assert "accuracy" in out
    assert "weight" not in out


def test_answer_to_sql_keeps_its_order(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    query_rows(study, sql="SELECT 'b' AS task, 2 AS n, 'x' AS preset UNION ALL SELECT 'a', 1, 'x' ORDER BY task DESC")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert (lines[0][0], lines[1]) == ("2", ["task", "n", "preset"])
    assert lines[3:] == [["b", "2", "x"], ["a", "1", "x"]]


def test_narrow_terminal_drops_the_last_columns_asked_for(
    study: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    query_rows(study, columns="key,seed,accuracy,identity", limit=1)
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["key", "seed", "accuracy"]
    assert "identity" in out.splitlines()[-1]


def test_task_column_is_shown_for_several_tasks_only(capsys: pytest.CaptureFixture[str]) -> None:
    of_two = [*rows(), *rows(task="other")]
    query_rows(Study("both", "", of_two), limit=1)
    assert capsys.readouterr().out.splitlines()[2].split()[0] == "task"
    query_rows(Study("one", "", rows()), limit=1)
    assert "task" not in capsys.readouterr().out


def test_settings_that_differ_are_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    tuned = [*rows(recipe={"lr": 0.1, "batch": 8}), *rows(recipe={"lr": 0.2, "batch": 8})]
    query_rows(Study("tuned", "", tuned), best="accuracy")
    out = capsys.readouterr().out
    assert "recipe" in out
    assert {line.split()[4] for line in out.splitlines()[4:]} == {"0.1", "0.2"}


def test_column_with_one_value_is_shown_only_where_asked(capsys: pytest.CaptureFixture[str]) -> None:
    both = Study("both", "", [*rows(data="a" * 64), *rows(task="other", data="b" * 64)])
    query_rows(both, by="depth")
    assert "data" not in capsys.readouterr().out
    query_rows(both, by="data")
    assert "data" in capsys.readouterr().out


def test_chance_has_two_digits() -> None:
    for chance, shown in ((0.0, "0.00"), (0.003906, "<0.01"), (0.3184, "0.32"), (1.0, "1.00")):
        assert report.cell({"chance": chance}, "chance") == shown
    others = (("high", "high"), (-5.0, "-5"), (float("nan"), "nan"), (2.0, "2"), (None, "-"))  # which are no chance
    for value, shown in others:
        assert report.cell({"chance": value}, "chance") == shown
    assert report.cell({"chance": 0.5, "chance_se": 0.25}, "chance") == "0.500±0.250"


def test_conflicting_rows_of_one_training_are_named(tmp_path: Path) -> None:
    (row,) = [one for one in rows() if (one.architecture.depth, one.architecture.topology, one.seed) == (1, "rmt", 0)]
    lines.write([row, replace(row, metrics={"accuracy": 0.25}), replace(row, speeds={"x": 1.0})], tmp_path / "a.jsonl")
    found = nas.load(source=tmp_path / "a.jsonl")
    assert len(found) == 1
    assert [re.findall(r"\b0\.\d+", line) for line in found.bad] == [["0.6", "0.25"], ["0.25", "0.6"]]
    assert all(row.identity() in line and "accuracy" in line for line in found.bad)
    without, by_chance = replace(row, metrics={"loss": 1.0}), replace(row, metrics={"accuracy": 0.625})
    near = replace(row, metrics={"accuracy": 0.607, "accuracy_se": 0.001})
    lines.write([row, near, without, by_chance], tmp_path / "b.jsonl")
    assert nas.load(source=tmp_path / "b.jsonl").bad == ()


def test_all_columns_are_printed_one_per_line(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    query_rows(study, columns="all", limit=2, order_by="-accuracy")
    lines = capsys.readouterr().out.splitlines()
    first, second = (next(i for i, line in enumerate(lines) if line.startswith(f"{n} of 2 ")) for n in (1, 2))
    named = {line.split()[0]: line.split()[1] for line in lines[first + 1 : second]}
    assert named["topology"] == "resnet"
    assert named["accuracy"].startswith("0.76")
    assert {"identity", "width", "hidden"} <= named.keys()
    query_rows(study, columns="all", limit=2, format=Format.MARKDOWN)
    assert capsys.readouterr().out.count(" identity |") == 1


def test_column_asked_for_is_shown_though_it_has_one_value(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    query_rows(study, best="accuracy", columns="preset,topology,accuracy")
    assert capsys.readouterr().out.splitlines()[1].split() == ["preset", "topology", "accuracy"]
    query_rows(study, best="accuracy", columns="preset")
    assert capsys.readouterr().out.splitlines()[1].split() == ["preset"]


def test_only_the_shown_columns_of_a_wide_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"found_{number}": float(number) for number in range(50)}
    export.write(table.from_records([{"topology": "a", **many}]), "parquet", tmp_path / "theirs.parquet")
    read: list[str] = []
    select = ParquetTable.select
    monkeypatch.setattr(ParquetTable, "select", lambda of, names: [read.extend(names), select(of, names)][1])
    query_rows(nas.load(source=tmp_path / "theirs.parquet"))
    assert {*read} == {"topology", *(f"found_{number}" for number in range(6))}


def test_terminal_shows_ten_whole_rows(capsys: pytest.CaptureFixture[str]) -> None:
    of_many = [one for seed in range(3) for one in rows(recipe={"lr": 0.1 + seed})]
    query_rows(Study("many", "", of_many), columns="all")
    out = capsys.readouterr().out
    assert "10 of 30 " in out
    assert "11 of 30 " not in out
    assert "--limit 30" in out
