"""`nas results`: budgets, fronts, knees, best architectures, means and SQL."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nas
from expect import raises
from grouped import grouped
from nas.cli.printers.query import print_query
from nas.report.format import Format
from nas.report.study import Study
from result_rows import Ask, rows
from search_spaces.support.errors import Kind


def test_budget_bounds_rows(ask: Ask) -> None:
    assert {row["depth"] for row in ask(budget=["params<=2k"])} == {1, 2}
    assert {row["depth"] for row in ask(budget=["1.5k<=params<=2k"], where="accuracy > 0.5 or depth = 1")} == {2}
    assert {row["depth"] for row in ask(budget=["flops>=50k"])} == {3}


def test_front_and_its_knee_are_architectures(ask: Ask, study: Study) -> None:
    front = ask(pareto="accuracy,flops")
    assert [(row["key"], row["expected"], row["p_front"]) for row in front] == [
        (one.record["key"], one.expected["accuracy"], one.p_front) for one in study.front()
    ]
    assert [row["accuracy"] for row in front] == pytest.approx([0.605, 0.705, 0.755])
    assert {(row["seeds"], row["on_front"], row["tier"] > 0) for row in front} == {(2, "true", True)}
    (knee,) = study.front().knees()
    assert [row["key"] for row in ask(pareto="accuracy,flops", knee=True)] == [knee.record["key"]]
    assert [(row["depth"], row["topology"]) for row in ask(pareto="accuracy,flops", knee=True)] == [(2, "resnet")]
    assert len(front) == 3
    assert ask(pareto="min accuracy, max flops") != front
    assert [row["depth"] for row in ask(pareto="flops", limit=1)] == [1]


def test_one_lucky_seed_is_not_on_the_front(ask: Ask) -> None:
    lucky = [replace(row, metrics={"accuracy": 0.99}) if n == 9 else row for n, row in enumerate(rows())]
    assert (lucky[9].architecture.topology, lucky[9].architecture.depth) == ("rmt", 2)
    bad = [replace(row, seed=row.seed + 2, metrics={"accuracy": 0.1}) for row in lucky[8:]]
    front = ask(Study("lucky", "", [*lucky, *bad]), pareto="max accuracy")
    assert [(row["topology"], row["depth"]) for row in front] == [("resnet", 3)]


def test_held_out_seeds_alone_are_in_the_means_of_a_front(ask: Ask) -> None:
    held_out = frozenset(row.identity() for row in rows() if row.seed == 1)
    front = ask(Study("held out", "", rows(), reeval_identities=held_out), pareto="accuracy,flops")
    assert [(row["accuracy"], row["seeds"]) for row in front] == [(0.61, 1), (0.71, 1), (0.76, 1)]


def test_each_task_has_its_front(ask: Ask) -> None:
    both = Study("both", "", [*rows(), *rows(task="other")])
    front = ask(both, pareto="accuracy,flops")
    assert [*Counter(row["task"] for row in front).values()] == [3, 3]
    assert [row["task"] for row in ask(both, pareto="accuracy,flops", limit=1)] == ["any", "other"]
    assert [row["task"] for row in ask(both, pareto="accuracy,flops", knee=True)] == ["any", "other"]


def test_best_orders_architectures_and_gives_one_per_group(ask: Ask) -> None:
    rows = ask(best="accuracy")
    assert [(row["topology"], row["depth"]) for row in rows] == [
        ("resnet", 3), ("resnet", 2), ("rmt", 1), ("resnet", 1), ("rmt", 2),
    ]  # fmt: skip
    assert [row["accuracy"] for row in rows] == pytest.approx([0.755, 0.705, 0.605, 0.505, 0.405])
    assert ask(best="accuracy", limit=1) == rows[:1]
    assert [(row["topology"], row["depth"]) for row in ask(best="accuracy", by="topology")] == [
        ("resnet", 3),
        ("rmt", 1),
    ]
    assert ask(best="accuracy", by="topology", budget=["params<=1k"])[0]["topology"] == "rmt"
    assert ask(best="min accuracy")[0] == {**rows[-1], "p_best": 1.0}


def test_groups_have_means(ask: Ask) -> None:
    groups = {row["topology"]: row for row in ask(by="topology")}
    assert groups["resnet"]["n"] == 6
    assert groups["resnet"]["accuracy"] == pytest.approx((0.505 + 0.705 + 0.755) / 3)
    assert groups["rmt"]["params"] == 1500


def test_groups_have_means_of_any_column_of_numbers(ask: Ask, study: Study) -> None:
    timed = [replace(row, provenance={"wall_s": 10.0 + n}) for n, row in enumerate(rows())]
    times = Study("timed", "", timed)
    assert ask(times, by="topology", columns="wall_s") == [
        {"topology": "resnet", "wall_s": 12.5},
        {"topology": "rmt", "wall_s": 17.5},
    ]
    assert ask(times, by="wall_s", columns="n,wall_s_se,depth") == [
        {"range_wall_s": "8 to 16", "n": 6, "wall_s_se": pytest.approx(1.8708 / 6**0.5, rel=1e-4), "depth": 2.0},
        {"range_wall_s": "16 to 32", "n": 4, "wall_s_se": pytest.approx(1.29099 / 2, rel=1e-4), "depth": 1.5},
    ]
    assert [(row["range_wall_s"], row["wall_s"]) for row in ask(times, best="accuracy", by="wall_s")] == [
        ("8 to 16", 14.5),
        ("16 to 32", 16.5),
    ]
    for question in (
        {"best": "accuracy", "limit": 1},
        {"pareto": "max accuracy"},
        {"pareto": "accuracy", "knee": True},
    ):
        assert ask(times, **question, columns="depth,wall_s") == [{"depth": 3, "wall_s": 14.5}], question
    with raises("wrong-type", option="status", type="string"):
        ask(times, by="topology", columns="status")
    with raises("unknown-name", option="column", value="train_seconds"):
        ask(times, by="train_seconds")


def test_best_rate_of_each_topology_is_that_of_its_best_mean(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    rates = {0.1: [0.5, 0.52], 0.2: [0.7, 0.68], 0.3: [0.72, 0.6, 0.61]}
    tuned = [
        replace(row, recipe={"lr": rate}, seed=seed, metrics={"accuracy": value, "accuracy_se": 0.01})
        for row in rows()[::6]
        for rate, values in rates.items()
        for seed, value in enumerate(values)
    ]
    study = Study("tuned", "", tuned)
    question = {"best": "accuracy", "by": "topology", "columns": "recipe_lr,accuracy,seeds"}
    assert [{**row, "accuracy": round(row["accuracy"], 9)} for row in ask(study, **question)] == [
        {"topology": "resnet", "recipe_lr": 0.2, "accuracy": 0.69, "seeds": 2},
        {"topology": "rmt", "recipe_lr": 0.2, "accuracy": 0.69, "seeds": 2},
    ]
    assert len(ask(study, by="topology,recipe_lr")) == 6
    print_query(study, **question)
    assert "recipe_lr" not in capsys.readouterr().err  # each line has one recipe


def test_sql_sees_the_rows_that_meet_the_condition(ask: Ask) -> None:
    question = "SELECT topology, count(*) AS n FROM rows GROUP BY topology ORDER BY n DESC"
    assert ask(sql=question, where="depth > 1") == [{"topology": "resnet", "n": 4}, {"topology": "rmt", "n": 2}]


def test_front_is_ordered_by_cost_by_default(ask: Ask) -> None:
    flops = [row["flops"] for row in ask(pareto="accuracy,flops")]
    assert flops == sorted(flops)
    assert [row["flops"] for row in ask(pareto="accuracy,flops", order_by="-flops")] == flops[::-1]
    with raises("duplicate", option="column", value="flops"):
        ask(pareto="flops,flops")


def test_shipped_tables_have_names(ask: Ask) -> None:
    rows = ask(nas.load(source="tables"), by="topology")
    assert {row["task"] for row in rows} >= {"stdlib-lm", "lra-listops"}
    assert {row["topology"] for row in ask(nas.load(source="stdlib-lm-topologies"), by="topology")} >= {"rmt", "hyper"}


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"knee": True}, "missing-value", {"option": "--pareto", "needed_by": "--knee"}),
    ({"pareto": "accuracy", "best": "accuracy"}, "conflict", {"option": "--pareto", "excludes": "--best"}),
    ({"by": "depth", "sql": "SELECT 1"}, "conflict", {"option": "--by", "excludes": "--sql"}),
    ({"by": "depth,depth"}, "duplicate", {"option": "--by", "value": "depth"}),
    ({"best": "accuracy", "by": "seed"}, "conflict", {"option": "--by", "value": "seed"}),
    ({"pareto": ""}, "missing-value", {"option": "--pareto", "value": ""}),
    ({"best": "acuracy"}, "unknown-name", {"option": "objective", "value": "acuracy", "nearest": "accuracy"}),
    ({"best": "max acuracy"}, "unknown-name", {"option": "column", "value": "acuracy"}),
    ({"by": "topolgy"}, "unknown-name", {"option": "column", "value": "topolgy", "nearest": "topology"}),
    ({"budget": ["parms<=1k"]}, "unknown-name", {"value": "parms", "nearest": "params"}),
    ({"by": "depth", "format": Format.JSONL}, "unsupported", {"option": "--format", "value": "jsonl"}),
    ({"columns": "depth", "format": Format.JSONL}, "conflict", {"option": "--columns", "excludes": "--format"}),
    ({"where": "true) or (true", "budget": ["flops<=1"]}, "bad-syntax", {"value": "true) or (true"}),
    ({"sql": "select '99999-01-01'::date d"}, "out-of-range", {"option": "--sql", "cause": "OverflowError"}),
    ({"sql": "select '\ud800'"}, "bad-syntax", {"option": "--sql", "cause": "UnicodeEncodeError"}),
]


def test_impossible_questions_are_errors(study: Study) -> None:
    with grouped() as case:
        for question, kind, fields in MISTAKES:
            with case(str(question)), raises(kind, **fields):
                print_query(study, **question)


def test_huge_numbers_nan_and_columns_of_files_have_answers(ask: Ask, tmp_path: Path) -> None:
    ask(sql="select 18446744073709551615::ubigint as huge")
    ask(sql="select 'nan'::float as none")
    (tmp_path / "times.csv").write_text("latency_ms\n4.5\n5.5\n")
    assert ask(nas.load(source=tmp_path / "times.csv"), budget=["latency_ms<=5.1"]) == [{"latency_ms": 4.5}]
