"""`nas results`: what a terminal shows."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.cli.printers.query import print_query
from nas.report.format import Format
from nas.report.study import Study
from result_rows import rows
from results.records import export, table
from results.records.cell_text import cell_text


def headings(out: str) -> dict[str, list[int]]:
    """Task -> the numbers in the heading of its table."""
    titles = re.findall(r"^(any|other): (.*)$", out, re.MULTILINE)
    return {task: [*map(int, re.findall(r"\d+", rest))] for task, rest in titles}


def only_line(out: str) -> list[int]:
    """The numbers of the only line that was printed."""
    (line,) = out.splitlines()
    return [*map(int, re.findall(r"\d+", line))]


def test_terminal_shows_one_table_per_task(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    other = [replace(row, task="other", metrics={"loss": 1.0}, directions={"loss": "min"}) for row in rows()[:2]]
    both = Study("both", "", [*rows(), *other])
    print_query(both, by="topology")
    assert headings(capsys.readouterr().out) == {"any": [2, 10], "other": [1, 2]}
    print_query(both, best="accuracy")
    out = capsys.readouterr().out
    assert {"p", "best"} <= {*out.split()}  # p_best, on two lines
    assert "0.755±0.0" in out
    assert "other" not in out
    print_query(both, where="task = 'other'")
    assert "loss" in capsys.readouterr().out  # though the study's first task has accuracy
    print_query(study, where="depth = 1")
    out, err = capsys.readouterr()
    assert re.findall(r"\d+", out.splitlines()[0]) == ["4", "10"]
    assert re.findall(r"--\w+", err) == ["--best", "--by"]


def test_means_over_several_recipes_name_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    recipes = [replace(row, recipe={"epochs": 20 + row.seed, "lr": 0.1}) for row in rows()]
    print_query(Study("both", "", recipes), by="topology")
    err = capsys.readouterr().err
    assert "epochs (20, 21)" in err
    assert "seed" not in err
    print_query(Study("both", "", recipes), by="topology,recipe_epochs")
    print_query(Study("both", "", recipes), best="accuracy", by="topology")
    assert "epochs" not in capsys.readouterr().err


def test_columns_without_values_are_absent(capsys: pytest.CaptureFixture[str]) -> None:
    other = [replace(row, task="other", metrics={"loss": 1.0}, directions={"loss": "min"}) for row in rows()[:2]]
    print_query(Study("both", "", [*rows(), *other]), by="topology")
    _, out = capsys.readouterr().out.split("other: ")
    assert "loss" in out
    assert "accuracy" not in out


def test_terminal_shows_the_ten_best_per_task(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first = rows()[0]
    many = [replace(first, architecture=replace(first.architecture, hidden=8 + i)) for i in range(12)]
    both = Study("both", "", [*many, *(replace(row, task="other") for row in many[:3])])

    def row_counts(**question: Any) -> dict[str, int]:
        print_query(both, best="accuracy", **question)
        return {task: numbers[0] for task, numbers in headings(capsys.readouterr().out).items()}

    print_query(both, best="accuracy")
    assert headings(capsys.readouterr().out) == {"any": [10, 12, 12], "other": [3, 3]}
    assert row_counts(limit=11)["any"] == 11
    assert row_counts(limit=2) == {"any": 2, "other": 2}
    assert row_counts(columns="key,accuracy")["other"] == 3
    assert row_counts(order_by="-params")["any"] == 12
    assert row_counts(by="hidden")["any"] == 12
    print_query(both, best="accuracy", format=Format.CSV, output=tmp_path / "best.csv")
    assert len((tmp_path / "best.csv").read_text().splitlines()) == 16
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path}/best.csv" in line


def test_study_without_rows_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_query(Study("none", "", []))
    assert only_line(capsys.readouterr().out) == [0, 0]


def test_condition_that_no_row_meets_prints_one_line(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    questions: list[dict[str, Any]] = [
        {"where": "1=0"}, {"where": "1=0", "by": "topology"}, {"best": "accuracy", "where": "depth > 9"}
    ]  # fmt: skip
    for question in questions:
        print_query(study, **question)
        assert only_line(capsys.readouterr().out) == [0, 10], question


def test_table_has_the_metrics_of_a_file_of_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    export.write(table.from_rows(rows(speeds={"weight": 2.5})), "csv", tmp_path / "theirs.csv")
    print_query(nas.load(source=tmp_path / "theirs.csv"))
    out = capsys.readouterr().out
    assert "accuracy" in out
    assert "weight" not in out


def test_answer_to_sql_keeps_its_order(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    print_query(study, sql="SELECT 'b' AS task, 2 AS n, 'x' AS preset UNION ALL SELECT 'a', 1, 'x' ORDER BY task DESC")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert (lines[0][0], lines[1]) == ("2", ["task", "n", "preset"])
    assert lines[3:] == [["b", "2", "x"], ["a", "1", "x"]]


def test_narrow_terminal_drops_the_last_columns_asked_for(
    study: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_query(study, columns="key,seed,accuracy,identity", limit=1)
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["key", "seed", "accuracy"]
    assert "identity" in out.splitlines()[-1]


def test_narrow_terminal_shows_what_decides_a_front(
    study: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def headings_of(width: int, **question: Any) -> set[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        print_query(study, pareto="accuracy,flops", **question)
        lines = capsys.readouterr().out.splitlines()
        rule = next(i for i, line in enumerate(lines) if line.startswith("─"))
        assert max(map(len, lines[: rule + 4])) <= width
        return {*lines[rule - 1].split()}

    assert {"key", "topology", "depth", "flops", "accuracy", "expected", "front"} <= headings_of(80)
    assert headings_of(54) == {"key", "topology", "flops", "accuracy", "expected"}
    assert headings_of(62, budget=["params<=5k"]) == {"key", "topology", "params", "flops", "accuracy", "expected"}


def test_requested_metrics_have_their_errors_on_a_terminal(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    print_query(study, best="accuracy", columns="depth,accuracy", limit=1)
    assert capsys.readouterr().out.splitlines()[-1].split() == ["3", "0.755±0.005"]
    print_query(study, by="topology", columns="accuracy")
    assert capsys.readouterr().out.splitlines()[1].split() == ["topology", "accuracy"]


def test_task_column_is_shown_for_several_tasks_only(capsys: pytest.CaptureFixture[str]) -> None:
    rows_of_two_tasks = [*rows(), *rows(task="other")]
    print_query(Study("both", "", rows_of_two_tasks), limit=1)
    assert capsys.readouterr().out.splitlines()[2].split()[0] == "task"
    print_query(Study("one", "", rows()), limit=1)
    assert "task" not in capsys.readouterr().out


def test_table_has_the_settings_that_differ(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    rows_of_two_rates = [*rows(recipe={"lr": 0.1, "batch": 8}), *rows(recipe={"lr": 0.2, "batch": 8})]
    print_query(Study("tuned", "", rows_of_two_rates), best="accuracy")
    out = capsys.readouterr().out
    assert "recipe" in out
    assert {line.split()[4] for line in out.splitlines()[4:]} == {"0.1", "0.2"}


def test_column_with_one_value_needs_a_request(capsys: pytest.CaptureFixture[str]) -> None:
    both = Study("both", "", [*rows(data="a" * 64), *rows(task="other", data="b" * 64)])
    print_query(both, by="depth")
    assert "data" not in capsys.readouterr().out
    print_query(both, by="data")
    assert "data" in capsys.readouterr().out


def test_chance_has_two_digits() -> None:
    for chance, text in ((0.0, "0.00"), (0.003906, "<0.01"), (0.3184, "0.32"), (1.0, "1.00")):
        assert cell_text({"p_best": chance}, "p_best") == text
    other_values = (("high", "high"), (-5.0, "-5"), (float("nan"), "nan"), (2.0, "2"), (None, "-"))  # no probabilities
    for value, text in other_values:
        assert cell_text({"p_best": value}, "p_best") == text
    assert cell_text({"p_best": 0.5, "p_best_se": 0.25}, "p_best") == "0.500±0.250"


def test_all_columns_are_printed_one_per_line(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    print_query(study, columns="all", limit=2, order_by="-accuracy")
    lines = capsys.readouterr().out.splitlines()
    first, second = (next(i for i, line in enumerate(lines) if line.startswith(f"{n} of 2 ")) for n in (1, 2))
    values = {line.split()[0]: line.split()[1] for line in lines[first + 1 : second]}
    assert values["topology"] == "resnet"
    assert values["accuracy"].startswith("0.76")
    assert {"identity", "width", "hidden"} <= values.keys()
    print_query(study, columns="all", limit=2, format=Format.MARKDOWN)
    assert capsys.readouterr().out.count(" identity |") == 1


def test_requested_column_is_shown_though_it_has_one_value(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    print_query(study, best="accuracy", columns="preset,topology,accuracy")
    assert capsys.readouterr().out.splitlines()[1].split() == ["preset", "topology", "accuracy"]
    print_query(study, best="accuracy", columns="preset")
    assert capsys.readouterr().out.splitlines()[1].split() == ["preset"]


def test_terminal_shows_ten_whole_rows(capsys: pytest.CaptureFixture[str]) -> None:
    rows_of_three_rates = [row for seed in range(3) for row in rows(recipe={"lr": 0.1 + seed})]
    print_query(Study("many", "", rows_of_three_rates), columns="all")
    out = capsys.readouterr().out
    assert "10 of 30 " in out
    assert "11 of 30 " not in out
    assert "--limit 30" in out
