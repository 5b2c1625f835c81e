"""Hostile conditions choose rows or are refused."""

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from expect import raises
from grouped import grouped
from results.query import condition
from results.query.condition import FUNCTIONS, KEYWORDS, MAX_LENGTH, select
from search_spaces.support.errors import UserError


def refusal(table: pa.Table, text: str) -> str:
    """The one-line UserError of a condition."""
    with pytest.raises(UserError) as caught:
        select(table, text)
    assert str(caught.value).isprintable()
    assert caught.value.fields["option"] in ("--where", "column", "function")
    return str(caught.value)


OUT_OF_THE_BRACKETS = [
    "1) UNION SELECT (2", "1) UNION ALL SELECT 1 FROM rows WHERE (true", "1) union select 1 --",
    "true) FROM rows WHERE (true", "true) FROM rows; SELECT (true", "true); SELECT (true", "true; SELECT 1", ";",
    "true), (true", "true), ('a", "true) AS x, (false", "true) LIMIT (1", "true FROM rows", "true), (SELECT 1", ")",
    "", "true --\n) FROM rows; SELECT (true", "true /*\n*/) INTO x FROM (rows", "DISTINCT true", "true) OVER (",
    "$1", "?", "$name", "depth = $1",
]  # fmt: skip

STATEMENTS = [
    "COPY rows TO '{canary}'", "COPY (SELECT 1) TO '{canary}'", "ATTACH '{canary}' AS other", "ATTACH '{canary}'",
    "PRAGMA database_list", "PRAGMA version", "SET enable_external_access = true", "RESET lock_configuration",
    "INSTALL httpfs", "LOAD httpfs", "DROP TABLE rows", "CREATE TABLE x AS SELECT 1", "INSERT INTO rows VALUES (1)",
    "DELETE FROM rows", "UPDATE rows SET depth = 1", "EXPORT DATABASE '{canary}'", "CALL pragma_version()",
    "EXPLAIN SELECT 1", "SELECT 1", "FROM rows", "VALUES (1)", "WITH x AS (SELECT 1) SELECT 1", "DESCRIBE rows",
    "SHOW TABLES", "CHECKPOINT", "VACUUM", "BEGIN",
]  # fmt: skip

READS = [
    "read_csv('{canary}')",
    "read_text('{canary}') = ''",
    "read_blob('{canary}')",
    "read_parquet('{canary}')",
    "parquet_scan('{canary}')",
    "sniff_csv('{canary}')",
    "glob('{canary}') is null",
    "exists(SELECT * FROM read_csv('{canary}'))",
    "exists(FROM '{canary}')",
    "exists(SELECT 1)",
    "(SELECT true)",
    "(FROM read_text('{canary}'))",
    "(TABLE rows)",
    "depth = (SELECT 1)",
    "depth IN (SELECT 1)",
    "depth IN (FROM rows)",
    "depth > ALL (SELECT 1)",
    "depth = ANY (SELECT 1)",
    "depth = ANY ([1])",
    "(1, 2) IN (SELECT 1, 2)",
    "ARRAY(SELECT 1) = [1]",
    "true or depth = (SELECT count(*) FROM duckdb_settings())",
    "coalesce(true, (SELECT true))",
    "abs((SELECT 1)) = 1",
    "depth BETWEEN 1 AND (SELECT 2)",
    "depth IN (1, 2, (SELECT 3))",
    "NOT (SELECT true)",
    "(SELECT true) IS NULL",
    "CASE WHEN (SELECT true) THEN true END",
    "getenv('HOME') = ''",
    "set_config('threads', '2', false)",
    "json_execute_serialized_sql('x')",
    "json_serialize_sql('SELECT 1') = ''",
    "main.abs(depth) > 1",
    "system.main.abs(depth) > 1",
    "pg_catalog.abs(depth) > 1",
    "rows.depth = 1",
    "main.rows.depth = 1",
    "memory.main.rows.depth = 1",
    "rows",
    "rows IS NULL",
    "given.depth = 1",
    "rowid = 0",
    "duckdb_tables.sql = ''",
]

BARE = [f"{name} = ''" for name in "user current_user session_user current_date current_timestamp current_role".split()]

OTHER_PARTS = [
    "*",
    "rows.*",
    "COLUMNS(*)",
    "COLUMNS('dep.*') > 1",
    "*COLUMNS(*) > 1",
    "#1 = 1",
    "DEFAULT",
    "count(*) > 1",
    "sum(depth) > 1",
    "max(depth) = depth",
    "string_agg(topology) = ''",
    "list(depth) = [1]",
    "row_number() OVER () > 1",
    "sum(depth) OVER (PARTITION BY seed) > 1",
    "lag(depth) OVER () > 1",
    "abs(DISTINCT depth) > 1",
    "abs(depth ORDER BY depth) > 1",
    "abs(depth) FILTER (WHERE true) > 1",
    "unnest([true, false])",
    "generate_series(1, 1000000000)",
    "list_transform([1], lambda x: x + 1) = [2]",
    "list_transform([1], x -> x + 1) = [2]",
    "[x FOR x IN range(1000000000)] = []",
    "lambda x: x",
    "[depth] = [1]",
    "depth[1] = 1",
    "topology[1:2] = 'dc'",
    "{'a': depth} = {'a': 1}",
    "MAP {'a': 1} = MAP {'a': 1}",
    "(depth, seed)",
    "row(depth) = row(1)",
    "depth::VARCHAR = '1'",
    "CAST(depth AS VARCHAR) = '1'",
    "TRY_CAST(topology AS INTEGER) IS NULL",
    "TRY(depth / 0 = 1)",
    "DATE '2020-01-01' < DATE '2021-01-01'",
    "INTERVAL 1 DAY > INTERVAL 2 DAY",
    "topology COLLATE NOCASE = 'RESNET'",
    "CASE WHEN depth = 1 THEN true ELSE false END",
    "if(depth = 1, true, false)",
    "topology LIKE 'a!%' ESCAPE '!'",
    "topology GLOB 'r*'",
    "topology || topology = 'a'",
    "depth!  > 1",
    "1 << 62 > 1",
    "~depth > 1",
    "topology.length() > 1",
    "struct_extract(topology, 'a') = 1",
    "depth AT TIME ZONE 'UTC' = 1",
    "GROUPING(depth) = 1",
]

BOMBS = [
    "lpad('a', 1000000000, 'a') = ''",
    "rpad(topology, 1000000000, 'a') = ''",
    "range(1000000000000) = []",
    "list_resize([1], 1000000000) = []",
    "array_to_string(range(1000000000), '') = ''",
    "bar(1, 0, 1, 1000000000) = ''",
    "sleep_ms(100000) IS NULL",
    "(" * 1500 + "true" + ")" * 1500,
    "(" * 2000,
    "NOT " * 900 + "true",
    "abs(" * 700 + "depth" + ")" * 700 + " > 1",
    "- " * 1900 + "depth > 1",
    "+".join(["depth"] * 660) + " > 1",
    "[" * 1900 + "]" * 1900,
    "CASE WHEN " * 390,
    "true or " * 10_000 + "true",
    "topology = '" + "a" * MAX_LENGTH + "'",
    "regexp_matches(topology, '((((a{100}){100}){100}){100}){100}')",
    "(with a as (" * 300,
    "depth in (select 1 union all (" * 100,
    "(" * 21 + "true" + ")" * 21,
]

CHARACTERS = [
    "true\0", "true\x1b[31m", "topology = '\x1b[31m'", '"\x1b" = 1', "\ud800 = 1", "true\u202e", "true\ufeff",
    "\x7f", "true\r\x08", "depth = \u0663", "depth \uff1d 1", "\u2018a\u2019 = \u2018a\u2019",
]  # fmt: skip


TEXTS = {
    "brackets": OUT_OF_THE_BRACKETS,
    "statements": STATEMENTS,
    "reads": READS,
    "bare names": BARE,
    "other parts": OTHER_PARTS,
    "bombs": BOMBS,
    "characters": CHARACTERS,
}


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_anything_but_a_condition_on_columns_is_refused(table: pa.Table, texts: list[str], tmp_path: Path) -> None:
    canary = tmp_path / "canary.csv"
    canary.write_text("nightingale\n1\n")
    with grouped() as case:
        for text in texts:
            with case(text):
                message = refusal(table, text.replace("{canary}", str(canary)))
                assert "nightingale" not in message
                assert [path.name for path in tmp_path.iterdir()] == ["canary.csv"]
                assert canary.read_text() == "nightingale\n1\n"
                assert len(message) < 1000


ENGINE_ALONE = [
    "exists(SELECT * FROM read_csv('{canary}'))",
    "exists(SELECT * FROM read_text('{canary}'))",
    "exists(FROM '{canary}')",
    "exists(FROM glob('{canary}'))",
    "exists(FROM 'https://localhost:1/x.csv')",
    "exists(FROM held_here)",
    "getenv('HOME') = ''",
    "set_config('enable_external_access', 'true', false) = 'true'",
    "true) FROM rows; ATTACH '{canary}' AS other; SELECT (true",
    "true) FROM rows; COPY rows TO '{canary}'; SELECT (true",
    "true) FROM rows; SET enable_external_access = true; SELECT (true",
    "true) FROM rows; SET lock_configuration = false; SELECT (true",
    "true) FROM rows; INSTALL httpfs; SELECT (true",
]


def test_engine_alone_reaches_no_file_and_no_setting(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition, "_rewrite", lambda text, columns: (text, []))
    canary = tmp_path / "canary.csv"
    canary.write_text("nightingale\n1\n")
    held_here = pa.table({"x": [1]})  # a name that a replacement scan would find in the caller's frames
    with grouped() as case:
        for text in ENGINE_ALONE:
            with case(text):
                assert "nightingale" not in refusal(table, text.replace("{canary}", str(canary)))
                assert canary.read_text() == "nightingale\n1\n"
    assert len(held_here) == 1


def test_no_other_function_of_the_engine_can_be_called() -> None:
    names = {name for (name,) in duckdb.sql("SELECT function_name FROM duckdb_functions()").fetchall()}
    plain_names = {name for name in names if name.isidentifier()} - {*FUNCTIONS, *KEYWORDS}
    assert {"read_csv", "repeat", "duckdb_settings", "nextval"} <= plain_names
    with grouped() as case:
        for name in plain_names:
            with case(name), raises("unknown-name", option="function", value=name):
                condition.columns_in(f"{name}(depth) = 1", ["depth"])


def test_every_allowed_function_is_a_plain_function_of_its_row() -> None:
    query = (
        "SELECT function_name, function_type, stability FROM duckdb_functions() WHERE list_contains(?, function_name)"
    )
    functions = duckdb.execute(query, [list(FUNCTIONS)]).fetchall()
    assert {name for name, *_ in functions} == set(FUNCTIONS) - {"coalesce"}  # an operator
    assert {tuple(traits) for _, *traits in functions} == {("scalar", "CONSISTENT")}


FOREIGN = (
    "[ ] { } ; . : :: ~ ! @ # $$ $1 ? || && -- /* */ == => -> e'a' x'ff' case when then end cast as select from where"
    " union with table values exists any all lambda interval distinct order by limit over rows rowid read_csv( sum("
    " unnest( columns( try("
).split(" ")
WORDS = "depth topology flops accuracy \"depth\" 1 0 2e6 .5 'a' 'dca%' '' ( ) , = <> < > + - * / // % ^ **".split(" ")
WORDS += [*KEYWORDS, *(f"{name}(" for name in FUNCTIONS)]


def test_random_text_gives_rows_or_a_mistake(table: pa.Table) -> None:
    with grouped() as case:
        for seed in range(40):
            for text in random_texts(seed):
                with case(repr(text)):
                    try:
                        depths, message = select(table, text)["depth"].to_pylist(), ""
                    except UserError as error:
                        depths, message = [], str(error)
                    assert set(depths) <= set(range(1, 7))
                    assert message.isprintable()


def random_texts(seed: int) -> list[str]:
    chance = random.Random(seed)
    whole = list("flops <= 2e6 and topology like 'dca%' or abs(depth - 3) in (1, 2)")
    for _ in range(3):
        whole[chance.randrange(len(whole))] = chance.choice(
            ["", "'", "(", ")", ";", "-", '"', chr(chance.randrange(256))]
        )
    return [
        " ".join(chance.choices(WORDS, k=chance.randint(1, 12))),
        " ".join(chance.choices(WORDS + FOREIGN, k=chance.randint(1, 12))),
        "".join(chr(chance.choice([chance.randrange(128), chance.randrange(0x110000)])) for _ in range(12)),
        "".join(whole),
    ]
