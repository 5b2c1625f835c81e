"""Conditions and their errors."""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from expect import check, raises, warns
from grouped import grouped
from results.query import condition, sandbox
from results.query.condition import select
from results.records.row import Row
from results.records.table import from_rows
from search_spaces.support.errors import Kind, Notice, UserError

MakeRow = Callable[..., Row]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with sandbox.rows_in_memory(pa.table({"x": [1]})) as connection:
        yield connection


@pytest.fixture
def quick(database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Share one database between conditions: starting it is slower than a query."""

    @contextmanager
    def rows_in_memory(table: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
        database.register("selected", table)
        database.execute("CREATE OR REPLACE TABLE rows AS FROM selected")
        database.unregister("selected")
        try:
            yield database
        finally:
            database.execute("DROP MACRO IF EXISTS defined")

    monkeypatch.setattr(condition, "rows_in_memory", rows_in_memory)


DEPTHS: list[tuple[str, list[int]]] = [
    ("flops < 2e6", [1]),
    ("flops < 2M", [1]),
    ("flops < 2000k", [1]),
    ("flops<.002G or flops>=.006G", [1, 6]),
    ("flops < 0.0000035T", [1, 2, 3]),
    ("flops <= 2e6 and topology like 'dca%'", [2]),
    ("topology like 'dca%'", [2, 3]),
    ("topology not like 'dca%'", [1, 4, 5, 6]),
    ("topology ilike 'DCA%'", [2, 3]),
    ("topology in ('none', 'resnet')", [1, 6]),
    ("depth not in (1, 2, 3)", [4, 5, 6]),
    ("topology = 'rmt(keys=64)'", [4]),
    ("topology <> 'resnet' and not topology = 'none'", [2, 3, 4, 5]),
    ("regexp_matches(topology, '^(dca|rmt)')", [2, 3, 4]),
    ("starts_with(upper(topology), 'GRN') or contains(topology, 'keys')", [4, 5]),
    ("accuracy between 0.2 and 0.5", [2, 3, 5]),
    ("accuracy is null", [4]),
    ("accuracy is not null", [1, 2, 3, 5, 6]),
    ("accuracy > 0", [1, 2, 3, 5, 6]),
    ("not accuracy > 0.2", [1, 2]),
    ("coalesce(accuracy, 0) = 0", [4]),
    ("flops / depth = 1e6 and depth % 2 = 0", [2, 4, 6]),
    ("abs(depth - 3) <= 1", [2, 3, 4]),
    ("-depth > -2", [1]),
    ("log10(flops) > 6.6", [4, 5, 6]),
    ("FLOPS < 2e6 AND Depth = 1", [1]),
    ('"depth" = 1', [1]),
    ("depth=1or depth=2", [1, 2]),
    ("(topology)like('dca%')and-depth<-2", [3]),
    ("depth = 3 - -1", [4]),
    ("depth in ((1), ((2)))", [1, 2]),
    ("least(depth, 3) = greatest(depth, 3)", [3]),
    ("round(sqrt(depth)) = 2 and depth ** 2 <> 9 and depth // 2 = 2", [4, 5]),
    ("length(topology) = 4", [6]),
    ("accuracy > .15 and accuracy < 3.", [2, 3, 5, 6]),
    ("depth = 1\n or\tdepth = 2", [1, 2]),
    ("(depth = 1) or (depth = 2)", [1, 2]),
    ("true", [1, 2, 3, 4, 5, 6]),
    ("1 = 2", []),
    ("depth in (" + ",".join(map(str, range(3, 900))) + ")", [3, 4, 5, 6]),
    (" or ".join(f"depth = {i}" for i in range(3, 200)), [3, 4, 5, 6]),
]


@pytest.mark.usefixtures("quick")
def test_condition_chooses_its_rows_in_order(table: pa.Table) -> None:
    with grouped() as case:
        for text, depths in DEPTHS:
            with case(text):
                rows = select(table, text)
                assert rows["depth"].to_pylist() == depths
                assert rows.schema == table.schema


def test_quoted_text_is_never_read_as_sql(table: pa.Table) -> None:
    assert len(select(table, "error = '1) UNION SELECT * FROM read_csv(''x''); --' or depth = 1")) == 1


def test_condition_works_on_an_empty_table(make_row: MakeRow) -> None:
    assert len(select(from_rows([]), "flops < 2e6")) == 0


NAMES = ("rows", "given", "rowid", "select", "and", "abs", "a b", "a.b", 'a"b', "top5-accuracy", "é", "1", "--", ";")
BARE = ("é", "select", "union", "with", "from", "integer", "date", "current_user")
FUNCTIONS = ("random", "version", "current_database", "txid_current")


@pytest.mark.usefixtures("quick")
def test_column_may_have_any_name(make_row: MakeRow) -> None:
    table = from_rows([make_row(metrics=dict.fromkeys(NAMES, value)) for value in (1.0, 2.0)])
    with grouped() as case:
        for name in NAMES:
            with case(name):
                literal = name.replace('"', '""')
                assert select(table, f'"{literal}" > 1')[name].to_pylist() == [2.0]


def test_columns_that_differ_in_case_alone_are_refused(make_row: MakeRow) -> None:
    table = from_rows([make_row(metrics={"loss": 1.0, "Loss": 2.0})])
    with raises("conflict", option="column", value="loss", choices=("loss", "Loss")):
        select(table, "loss > 0")
    assert len(select(table, "depth > 0")) == 1


@pytest.mark.usefixtures("quick")
def test_column_that_is_a_word_needs_no_quotes(make_row: MakeRow) -> None:
    table = from_rows([make_row(metrics=dict.fromkeys(BARE, value)) for value in (1.0, 2.0)])
    with grouped() as case:
        for name in BARE:
            with case(name):
                assert select(table, f"{name} > 1 and {name.upper()} > 1")[name].to_pylist() == [2.0]


def test_column_named_like_a_function_cannot_be_called(make_row: MakeRow) -> None:
    table = from_rows([make_row(metrics=dict.fromkeys(FUNCTIONS, 1.0))])
    with grouped() as case:
        for name in FUNCTIONS:
            with case(name), raises("unknown-name", option="function", value=name):
                select(table, f"{name}() is not null")
            for text in ('"{}"() is not null', '"{}" ( ) is not null', '"{}"\n() is not null'):
                with case(text.format(name)), raises("wrong-type", option="--where", column=name):
                    select(table, text.format(name))


SLIPS: list[tuple[str, Kind, dict[str, Any]]] = [
    ("", "missing-value", {"value": ""}),
    (" \n", "missing-value", {"value": " \n"}),
    ("flop < 2e6", "unknown-name", {"option": "column", "value": "flop", "nearest": "flops"}),
    ("toplogy = 'dca'", "unknown-name", {"option": "column", "value": "toplogy", "nearest": "topology"}),
    ('topology = "resnet"', "unknown-name", {"option": "column", "value": "resnet"}),
    ("topology = resnet", "unknown-name", {"option": "column", "value": "resnet"}),
    ("lowr(topology) = 'dca'", "unknown-name", {"option": "function", "value": "lowr", "nearest": "lower"}),
    ("depth", "wrong-type", {"type": "BIGINT"}),
    ("topology", "wrong-type", {"type": "VARCHAR"}),
    ("null", "wrong-type", {"type": '"NULL"'}),
    ("depth > 'deep'", "wrong-type", {"cause": "ConversionException"}),
    ("topology > 1", "wrong-type", {"cause": "BinderException"}),
    ("abs(topology) > 1", "wrong-type", {"cause": "BinderException"}),
    ("depth like '1%'", "wrong-type", {"cause": "BinderException"}),
    ("depth % 0 = 1", "bad-data", {"cause": "InvalidInputException"}),
    ("depth + 9223372036854775807 + accuracy * 0 > 0", "out-of-range", {"cause": "OutOfRangeException"}),
    ("regexp_matches(topology, '(')", "bad-data", {"cause": "InvalidInputException"}),
    ("depth = 1 or", "bad-syntax", {"cause": "ParserException"}),
    ("depth > > 1", "bad-syntax", {"cause": "ParserException"}),
    ("flops < 100kk", "unknown-name", {"option": "column", "value": "kk"}),
    ("flops < 100m", "unknown-name", {"option": "column", "value": "m"}),
    ("topology = 'dca", "bad-syntax", {"part": "'"}),
    ('"depth = 1', "bad-syntax", {"part": '"'}),
    ("(depth = 1", "bad-syntax", {"part": "brackets"}),
    ("depth = 1)", "bad-syntax", {"part": "brackets"}),
    ("depth = 1 -- my favourite", "bad-syntax", {"part": "--"}),
    ("depth = 1; depth = 2", "bad-syntax", {"part": ";"}),
]


@pytest.mark.usefixtures("quick")
def test_each_mistake_has_its_own_error(table: pa.Table) -> None:
    with grouped() as case:
        for text, kind, fields in SLIPS:
            with case(text):
                with raises(kind, **{"option": "--where", **fields}) as caught:
                    select(table, text)
                assert str(caught.value).isprintable()


def test_condition_that_takes_too_long_is_stopped() -> None:
    table = pa.table({"topology": ["dca(k=2)" * 10] * 100_000})
    long = " or ".join(f"regexp_matches(topology, 'a.*b.*c{i}')" for i in range(60))
    with raises("too-large", option="--where", most=0.1):
        select(table, long, seconds=0.1)


def test_no_timer_is_left_running(table: pa.Table) -> None:
    before = threading.active_count()
    for text in ("true", "depth", "(", "depth % 0 = 1"):
        with contextlib.suppress(UserError):
            select(table, text)
        assert threading.active_count() == before, text


UNDEFINED_VALUES = (
    *("ln(0 - depth)", "sqrt(0 - depth)", "log10(0 - 1)", "pow(0 - depth, 0.5)", "(0 - depth) ** 0.5"),
    *("(depth - depth) / 0", "1e308 * 10 - 1e308 * 10", "abs(ln(0 - 2))", "1 + sqrt(0 - depth) * 2"),
)
COMPARISONS = ("{} > 0", "{} <= 0", "{} = {}", "{} <> 1", "not {} > 0", "{} between 0 and 1", "0 < {}", "{} in (1, 2)")


@pytest.mark.usefixtures("quick")
def test_undefined_values_meet_neither_a_condition_nor_its_opposite(table: pa.Table) -> None:
    with grouped() as case:
        for undefined in UNDEFINED_VALUES:
            with case(undefined):
                assert not len(select(table, " or ".join(COMPARISONS).replace("{}", undefined)))
                null = f"{undefined} is null and coalesce({undefined}, 1) = 1"
                assert len(select(table, null)) == len(table)


@pytest.mark.usefixtures("quick")
def test_defined_values_are_compared_as_in_python(table: pa.Table) -> None:
    for text, holds in {
        "ln(depth) >= 0": lambda depth: True,
        "(depth + 1) * 2 > 6 and (depth - 1) / 2 < 3": lambda depth: (depth + 1) * 2 > 6 and (depth - 1) / 2 < 3,
        "depth % 2 = 0 or -depth > 0 - 2": lambda depth: depth % 2 == 0 or -depth > -2,
        "depth + 9007199254740993 > 9007199254740993": lambda depth: True,
    }.items():
        depths = select(table, text)["depth"].to_pylist()
        assert depths == [depth for depth in table["depth"].to_pylist() if holds(depth)], text


NEARLY: list[tuple[str, list[tuple[str, str]]]] = [
    ("topology = 'resnett'", [("resnett", "resnet")]),
    ("topology = 'rmt'", [("rmt", "rmt(keys=64)")]),  # a prefix
    ("topology in ('it''s', 'nonee')", [("nonee", "none")]),
    ("topology = 'none' and depth = 60 or topology = 'nonee'", [("nonee", "none")]),
    ("topology like 'resnett%'", []),
    ("topology like 'resnet_'", []),
    ("topology = 'none' and 'resnett' like 'x'", []),
    ("regexp_matches(topology, 'resnet.')", []),
    ("topology not in ('resnett') and depth > 60", []),
    ("topology <> 'resnett' and depth > 60", []),
    ("depth > 60 and Topology='resnett'", [("resnett", "resnet")]),
    ("topology = 'none' and depth = 12345", []),
    ("topology in ('none', 'nonee')", []),  # which has rows
    ("depth > 100", []),
]


@pytest.mark.usefixtures("quick")
def test_notice_of_no_rows_names_the_nearest_value(table: pa.Table) -> None:
    with grouped() as case:
        for text, near in NEARLY:
            with case(text), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                select(table, text)
                notices = [warning.message for warning in caught if isinstance(warning.message, Notice)]
                assert len(notices) == len(caught) == len(near)
                for notice, (value, nearest) in zip(notices, near, strict=True):
                    check(notice, "unknown-name", option="topology", value=value, nearest=nearest)


@pytest.mark.usefixtures("quick")
def test_topology_with_explicit_defaults_is_found_as_the_nearest() -> None:
    there = pa.table({"topology": ["hyper(streams=2)", "hyper", "rmt((", "resnet"]})
    for text in ("hyper(streams=4)", " hyper ", "hyper(dynamic=true, streams=4)"):
        with warns("unknown-name", option="topology", value=text, nearest="hyper"):
            assert not len(select(there, f"topology = '{text}'"))
    with warns("unknown-name", value="rmt(((", nearest="rmt(("):
        assert not len(select(there, "topology = 'rmt((('"))
