"""`nas results`: sources, output files, and the columns that are read."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nas
from expect import raises, warns
from grouped import grouped
from nas.cli.printers.query import print_query
from nas.report.format import Format
from nas.report.study import Study
from result_rows import Ask, rows
from results.records import export, jsonl, sources, table
from results.records.parquet import ParquetTable


def test_files_and_a_study_answer_together(study: Study, ask: Ask, tmp_path: Path) -> None:
    third = [replace(row, seed=2) for row in rows()[::2]]
    jsonl.write(third, tmp_path / "rows.jsonl.gz")
    export.write(table.from_rows([replace(row, seed=3) for row in third]), "parquet", tmp_path / "rows.parquet")
    files = [tmp_path / "rows.jsonl.gz", tmp_path / "rows.parquet"]
    alone, both = nas.load(source=files), nas.load("s", storage=study.storage, source=files)
    assert {row["n"] for row in ask(alone, by="key")} == {2}
    assert {row["n"] for row in ask(both, by="key")} == {4}
    assert len(both.rows()) == 15
    with raises("unsupported", option="--format", value="jsonl"):
        print_query(both, format=Format.JSONL)
    with raises("missing-value", option="column", value="accuracy", choices=("max accuracy", "min accuracy")):
        print_query(nas.load(source=files[1]), best="accuracy")
    assert ask(nas.load(source=files[1]), best="max accuracy")[0]["depth"] == 3


def test_file_of_any_columns_answers_questions(tmp_path: Path, ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "theirs.csv").write_text("model,score\na,1\nb,2\n")
    source = nas.load(source=tmp_path / "theirs.csv")
    print_query(source)
    assert re.findall(r"\d+", capsys.readouterr().out.splitlines()[0]) == ["2", "2"]
    assert ask(source, pareto="max score") == [
        {"seeds": 1, "expected": 2.0, "p_front": None, "on_front": "true", "tier": 1, "model": "b", "score": 2}
    ]
    assert ask(source, by="model", limit=1) == [{"model": "a", "n": 1, "score": 1, "score_se": None}]


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"where": "DEPTH < 3 or error = 'so'"},
    {"budget": ["flops<=50k"], "order_by": "-seed"},
    {"pareto": "max accuracy,flops", "knee": True},
    {"best": "max accuracy", "by": "topology"},
    {"by": "topology,depth"},
    {"by": "accuracy"},
    {"by": "topology", "columns": "n,seed"},
    {"by": "topology", "columns": "seed", "order_by": "-seed"},
    {"sql": "SELECT depth, count(*) AS n FROM rows GROUP BY depth ORDER BY depth"},
    {"columns": "seed,commit", "order_by": "accuracy desc"},
    {"columns": "all", "limit": 1},
]


def test_answer_from_some_columns_of_parquet_equals_that_from_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mixture = table.from_rows([*rows(), *rows(preset="full", error="so", recipe={"lr": 0.5})])
    export.write(mixture, "parquet", tmp_path / "theirs.parquet")
    source = nas.load(source=tmp_path / "theirs.parquet")
    with grouped() as case:
        for question in QUESTIONS:
            with case(str(question)):
                print_query(source, **question)
                output = capfd.readouterr()
                with monkeypatch.context() as patch:
                    patch.setattr("nas.cli.printers.query._columns_to_read", lambda study, *_: study.column_names)
                    print_query(source, **question)
                assert capfd.readouterr() == output


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the columns that are read from Parquet."""
    reads, select = list[str](), ParquetTable.select
    monkeypatch.setattr(ParquetTable, "select", lambda table, names: [reads.extend(names), select(table, names)][1])
    return reads


def test_only_needed_columns_are_read(tmp_path: Path, reads: list[str]) -> None:
    (tmp_path / "more.csv").write_text("model,score\na,1\n")
    export.write(table.from_records([{"model": "b", "score": 2, "other": 3}]), "parquet", tmp_path / "theirs.parquet")
    source = nas.load(source=[tmp_path / "more.csv", tmp_path / "theirs.parquet"])
    print_query(source, columns="model,score")
    print_query(source, where="score > 1", order_by="score", columns="model")
    assert {*reads} == {"model", "score"}
    assert source.select(["other"])["other"].to_pylist() == [None, 3]
    assert source.select([]).num_rows == 2


def test_measured_columns_of_a_file_have_means(study: Study, tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "theirs.csv").write_text("topology,score,score_se,seed,recipe_lr\na,1,0.1,0,1\na,3,0.1,1,1\n")
    source = nas.load(source=tmp_path / "theirs.csv")
    assert ask(source, by="topology") == [{"topology": "a", "n": 2, "score": 2.0, "score_se": 1.0}]
    both = Study("both", "", study.rows(), column_tables=sources.read(tmp_path / "theirs.csv").flat)
    of_topology = {row["topology"]: row for row in ask(both, by="topology")}
    assert of_topology["a"]["score"] == 2.0
    assert of_topology["rmt"]["accuracy"] == pytest.approx(0.505)
    assert "extra_metric_seconds" not in of_topology["rmt"]


def test_rows_are_written_as_json_lines(study: Study, tmp_path: Path) -> None:
    print_query(study, where="depth = 3", format=Format.JSONL, output=tmp_path / "rows.jsonl")
    assert jsonl.read(tmp_path / "rows.jsonl")[0] == [row for row in study.rows() if row.architecture.depth == 3]


def test_json_lines_of_architectures_are_their_rows(study: Study, tmp_path: Path) -> None:
    questions: list[tuple[dict[str, Any], list[tuple[int, str]]]] = [
        ({"pareto": "accuracy,flops"}, [(1, "rmt"), (2, "resnet"), (3, "resnet")]),
        ({"pareto": "accuracy,flops", "knee": True}, [(2, "resnet")]),
        ({"best": "accuracy", "by": "topology"}, [(3, "resnet"), (1, "rmt")]),
        ({"best": "accuracy", "limit": 2}, [(3, "resnet"), (2, "resnet")]),
    ]
    with grouped() as case:
        for number, (question, shapes) in enumerate(questions):
            with case(str(question)):
                print_query(study, **question, format=Format.JSONL, output=tmp_path / f"{number}.jsonl")
                rows, _ = jsonl.read(tmp_path / f"{number}.jsonl")
                assert [(row.architecture.depth, row.architecture.topology, row.seed) for row in rows] == [
                    (*shape, seed) for shape in shapes for seed in (0, 1)
                ]
                assert {row.identity() for row in rows} <= {row.identity() for row in study.rows()}


def test_csv_has_the_columns_asked_for(study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_query(study, best="accuracy", columns="topology,p_best", format=Format.CSV)
    assert next(iter(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == {"topology": "resnet", "p_best": "1"}


def test_exported_row_beside_its_original_counts_once(study: Study, tmp_path: Path) -> None:
    export.write(study.table, "parquet", tmp_path / "same.parquet")
    (tmp_path / "other.csv").write_text("depth,loss\n9,0.5\n")
    jsonl.write(study.rows(), tmp_path / "rows.jsonl")
    together = nas.load(source=[str(tmp_path / name) for name in ("rows.jsonl", "same.parquet", "other.csv")])
    assert len(together.table) == len(study.rows()) + 1
    assert together.table["status"].to_pylist()[-1] == "complete"


def test_written_answer_reads_back_with_its_metric(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for best in ("accuracy", None):
        file = tmp_path / f"{best}.parquet"
        print_query(study, best=best, by="topology", format=Format.PARQUET, output=file)
        print_query(nas.load(source=file))
        out = capsys.readouterr().out
        (error,) = {row["accuracy_se"] for row in nas.load(source=file).table.to_pylist()[:1]}
        assert "accuracy" in out, best
        assert f"±{error:.3f}" in out, best


def test_conflicting_rows_of_one_training_give_a_warning(tmp_path: Path) -> None:
    (row,) = [row for row in rows() if (row.architecture.depth, row.architecture.topology, row.seed) == (1, "rmt", 0)]
    jsonl.write([row, replace(row, metrics={"accuracy": 0.25}), replace(row, speeds={"x": 1.0})], tmp_path / "a.jsonl")
    with warns("skipped", study=str(tmp_path / "a.jsonl")):
        source = nas.load(source=tmp_path / "a.jsonl")
    assert len(source) == 1
    assert [re.findall(r"\b0\.\d+", line) for line in source.unreadable] == [["0.6", "0.25"], ["0.25", "0.6"]]
    assert all(row.identity() in line and "accuracy" in line for line in source.unreadable)
    without, by_chance = replace(row, metrics={"loss": 1.0}), replace(row, metrics={"accuracy": 0.625})
    near = replace(row, metrics={"accuracy": 0.607, "accuracy_se": 0.001})
    jsonl.write([row, near, without, by_chance], tmp_path / "b.jsonl")
    assert nas.load(source=tmp_path / "b.jsonl").unreadable == ()


def test_only_the_shown_columns_of_a_wide_file_are_read(tmp_path: Path, reads: list[str]) -> None:
    many = {f"found_{number}": float(number) for number in range(50)}
    export.write(table.from_records([{"topology": "a", **many}]), "parquet", tmp_path / "theirs.parquet")
    print_query(nas.load(source=tmp_path / "theirs.parquet"))
    assert {*reads} == {"topology", *(f"found_{number}" for number in range(6))}
