"""Questions in SQL: what they give, and that they reach nothing else."""

from pathlib import Path

import pyarrow as pa
import pytest

from results.export import FORMS
from results.sql import answer
from search_spaces.errors import UserError

ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT sum(n) AS n FROM t"


def test_a_question_is_answered_in_plain_columns(table: pa.Table) -> None:
    found = answer(
        table,
        "SELECT depth > 3 AS deep, sum(flops) AS flops, avg(accuracy) AS accuracy, count(*) AS n, list(depth) AS all, "
        "cast(1.5 AS decimal(4, 2)) AS price FROM rows GROUP BY ALL ORDER BY n, deep",
    )
    of_text = {"deep": ["false", "true"], "all": ["[1, 2, 3]", "[4, 5, 6]"]}
    of_numbers = {"flops": [6_000_000, 15_000_000], "accuracy": pytest.approx([0.2, 0.55]), "n": [3, 3]}
    assert found.to_pydict() == {**of_text, **of_numbers, "price": [1.5, 1.5]}
    assert all(write(found) for write in FORMS.values())
    assert answer(table, "SELECT 170141183460469231731687303715884105727::HUGEINT AS x")["x"].to_pylist() == [2.0**127]
    assert answer(table, "SELECT NULL AS x, [NULL] AS y").to_pylist() == [{"x": None, "y": "[None]"}]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("", 'must be one SELECT. Write it as in "SELECT topology, max(accuracy) FROM rows GROUP BY topology".'),
        ("-- nothing", "must be one SELECT"),
        ("SELECT 1; SELECT 2", "must be one SELECT"),
        ("CREATE TABLE x AS SELECT 1", "must be one SELECT"),
        ("SET threads = 4", "must be one SELECT"),
        ("ATTACH 'x.db'", "must be one SELECT"),
        ("COPY rows TO '{folder}/x.csv'", "must be one SELECT"),
        ("INSTALL httpfs", "must be one SELECT"),
        ("SELECT * FROM read_csv('{folder}/secret.csv')", "disabled by configuration"),
        ("SELECT * FROM '{folder}/secret.csv'", "disabled by configuration"),
        ("SELECT * FROM glob('{folder}/*')", "disabled by configuration"),
        ("SELECT * FROM table", "syntax error"),
        ("SELECT * FROM table", 'Write it as in "SELECT topology'),
        ("SELECT flop FROM rows", 'Referenced column "flop" not found'),
        ("SELECT flop FROM rows", "Did you mean 'flops'"),
        ("SELECT depth, depth FROM rows", "several columns are called 'depth'; name them with AS"),
        (ENDLESS, "took longer than"),
        ("SELECT error('so')", "so"),
    ],
)  # fmt: skip
def test_anything_else_is_a_line_and_reaches_nothing(
    table: pa.Table, tmp_path: Path, question: str, words: str
) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(UserError) as caught:
        answer(table, question.format(folder=tmp_path), seconds=0.5)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_neither_settings_nor_errors_say_where_home_is(table: pa.Table) -> None:
    home = str(Path.home())
    assert len(home) > 1
    for asked in ("* FROM duckdb_settings()", "* FROM pg_settings", "current_setting('secret_directory') AS x"):
        assert home not in str(answer(table, f"SELECT {asked}").to_pylist()), asked
    with pytest.raises(UserError) as caught:
        answer(table, "SELECT * FROM duckdb_extensions()")
    assert home not in str(caught.value)
