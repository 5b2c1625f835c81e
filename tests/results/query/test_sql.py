"""SQL queries return tables and access nothing else."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from expect import raises
from grouped import grouped
from results.query.sql import run_select
from results.records.export import FORMS
from search_spaces.support.errors import Kind

ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT sum(n) AS n FROM t"


def test_answers_have_plain_columns(table: pa.Table) -> None:
    columns = run_select(
        table,
        "SELECT depth > 3 AS deep, sum(flops) AS flops, avg(accuracy) AS accuracy, count(*) AS n, list(depth) AS all, "
        "cast(1.5 AS decimal(4, 2)) AS price FROM rows GROUP BY ALL ORDER BY n, deep",
    )
    of_text = {"deep": ["false", "true"], "all": ["[1, 2, 3]", "[4, 5, 6]"]}
    of_numbers = {"flops": [6_000_000, 15_000_000], "accuracy": pytest.approx([0.2, 0.55]), "n": [3, 3]}
    assert columns.to_pydict() == {**of_text, **of_numbers, "price": [1.5, 1.5]}
    assert all(write(columns) for write in FORMS.values())
    assert run_select(table, "SELECT 170141183460469231731687303715884105727::HUGEINT AS x")["x"].to_pylist() == [
        2.0**127
    ]
    assert run_select(table, "SELECT NULL AS x, [NULL] AS y").to_pylist() == [{"x": None, "y": "[None]"}]


REFUSALS: list[tuple[str, Kind, dict[str, Any]]] = [
    ("", "bad-syntax", {"needs": "SELECT"}),
    ("-- nothing", "bad-syntax", {"needs": "SELECT"}),
    ("SELECT 1; SELECT 2", "bad-syntax", {"needs": "SELECT"}),
    ("CREATE TABLE x AS SELECT 1", "bad-syntax", {"needs": "SELECT"}),
    ("SET threads = 4", "bad-syntax", {"needs": "SELECT"}),
    ("ATTACH 'x.db'", "bad-syntax", {"needs": "SELECT"}),
    ("COPY rows TO '{folder}/x.csv'", "bad-syntax", {"needs": "SELECT"}),
    ("INSTALL httpfs", "bad-syntax", {"needs": "SELECT"}),
    ("SELECT * FROM read_csv('{folder}/secret.csv')", "unsupported", {"cause": "PermissionException"}),
    ("SELECT * FROM '{folder}/secret.csv'", "unsupported", {"cause": "PermissionException"}),
    ("SELECT * FROM glob('{folder}/*')", "unsupported", {"cause": "PermissionException"}),
    ("SELECT * FROM table", "bad-syntax", {"cause": "ParserException"}),
    ("SELECT flop FROM rows", "unknown-name", {"nearest": "flops"}),
    ("SELECT abs(topology) FROM rows", "wrong-type", {"cause": "BinderException"}),
    ("SELECT depth, depth FROM rows", "duplicate", {"value": "depth"}),
    (ENDLESS, "too-large", {"most": 0.2}),
    ("SELECT error('so')", "bad-data", {"cause": "InvalidInputException"}),
]


def test_other_queries_are_refused_and_access_nothing(table: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with grouped() as case:
        for question, kind, fields in REFUSALS:
            with case(question):
                with raises(kind, option="--sql", **fields) as caught:
                    run_select(table, question.format(folder=tmp_path), seconds=0.2)
                assert str(caught.value).isprintable()
                assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_neither_settings_nor_errors_show_the_home_folder(table: pa.Table) -> None:
    home = str(Path.home())
    assert len(home) > 1
    for code in ("* FROM duckdb_settings()", "* FROM pg_settings", "current_setting('secret_directory') AS x"):
        assert home not in str(run_select(table, f"SELECT {code}").to_pylist()), code
    with raises("unsupported", option="--sql", cause="PermissionException") as caught:
        run_select(table, "SELECT * FROM duckdb_extensions()")
    assert home not in str(caught.value)
