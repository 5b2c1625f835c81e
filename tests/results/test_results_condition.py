"""What conditions mean, and what is said of a slip."""

import contextlib
import threading
import warnings
from collections.abc import Callable

import pyarrow as pa
import pytest

from results.condition import select
from results.row import Row
from results.table import from_rows
from search_spaces.errors import Notice, UserError

MakeRow = Callable[..., Row]


def refused(table: pa.Table, text: str) -> str:
    """The UserError that a text gives, which is one line without control characters."""
    with pytest.raises(UserError) as caught:
        select(table, text)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "depths"),
    [
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
    ],
)
def test_a_condition_chooses_its_rows_in_order(table: pa.Table, text: str, depths: list[int]) -> None:
    found = select(table, text)
    assert found["depth"].to_pylist() == depths
    assert found.schema == table.schema


def test_text_in_a_condition_is_only_text(table: pa.Table) -> None:
    assert len(select(table, "error = '1) UNION SELECT * FROM read_csv(''x''); --' or depth = 1")) == 1


def test_a_condition_works_on_no_rows(make_row: MakeRow) -> None:
    assert len(select(from_rows([]), "flops < 2e6")) == 0


@pytest.mark.parametrize(
    "name",
    ["rows", "given", "rowid", "select", "and", "abs", "a b", "a.b", 'a"b', "top5-accuracy", "é", "1", "--", ";"],
)
def test_a_column_may_have_any_name(make_row: MakeRow, name: str) -> None:
    table = from_rows([make_row(metrics={name: 1.0}), make_row(metrics={name: 2.0})])
    quoted = name.replace('"', '""')
    assert select(table, f'"{quoted}" > 1')[name].to_pylist() == [2.0]


def test_columns_that_differ_in_case_alone_are_refused(make_row: MakeRow) -> None:
    table = from_rows([make_row(metrics={"loss": 1.0, "Loss": 2.0})])
    assert "loss or Loss" in refused(table, "loss > 0")
    assert len(select(table, "depth > 0")) == 1


@pytest.mark.parametrize("name", ["é", "select", "union", "with", "from", "integer", "date", "current_user"])
def test_a_column_that_is_a_word_needs_no_quotes(make_row: MakeRow, name: str) -> None:
    table = from_rows([make_row(metrics={name: 1.0}), make_row(metrics={name: 2.0})])
    assert select(table, f"{name} > 1 and {name.upper()} > 1")[name].to_pylist() == [2.0]


@pytest.mark.parametrize("name", ["random", "version", "current_database", "txid_current"])
@pytest.mark.parametrize(
    "text", ["{}() is not null", '"{}"() is not null', '"{}" ( ) is not null', '"{}"\n() is not null']
)
def test_a_column_named_like_a_function_does_not_open_the_function(make_row: MakeRow, name: str, text: str) -> None:
    refused(from_rows([make_row(metrics={name: 1.0})]), text.format(name))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("flop < 2e6", "unknown column 'flop'. Did you mean 'flops'?"),
        ("toplogy = 'dca'", "Did you mean 'topology'?"),
        ('topology = "resnet"', "Text stands in single quotes"),
        ("topology = resnet", "Text stands in single quotes"),
        ("lowr(topology) = 'dca'", "unknown function 'lowr'. Did you mean 'lower'?"),
        ("depth", "BIGINT, not true or false"),
        ("topology", "VARCHAR, not true or false"),
        ("null", "not true or false"),
        ("depth > 'deep'", "Could not convert string 'deep'"),
        ("topology > 1", "Cannot compare"),
        ("abs(topology) > 1", "abs(VARCHAR)"),
        ("depth like '1%'", "BIGINT"),
        ("depth % 0 = 1", "Division by zero"),
        ("depth + 9223372036854775807 + accuracy * 0 > 0", "Overflow"),
        ("regexp_matches(topology, '(')", "missing )"),
        ("depth = 1 or", "syntax error"),
        ("depth = 1 or", "Write it as in \"flops <= 50M and topology = 'resnet'\""),
        ("depth > > 1", "syntax error"),
        ("flops < 100kk", "unknown column 'kk'"),
        ("flops < 100m", "unknown column 'm'"),
        ("topology = 'dca", "a quote that is not closed"),
        ('"depth = 1', "a quote that is not closed"),
        ("(depth = 1", "brackets do not match"),
        ("depth = 1)", "brackets do not match"),
        ("depth = 1 -- my favourite", "'--' may not be in it"),
        ("depth = 1; depth = 2", "';' may not be in it"),
    ],
)
def test_a_slip_gets_one_line_that_says_what_is_wrong(table: pa.Table, text: str, words: str) -> None:
    assert words in refused(table, text)


def test_a_condition_that_takes_too_long_is_stopped() -> None:
    table = pa.table({"topology": ["dca(k=2)" * 10] * 1_000_000})
    long = " or ".join(f"regexp_matches(topology, 'a.*b.*c{i}')" for i in range(60))
    with pytest.raises(UserError, match="took longer than"):
        select(table, long, seconds=0.5)


@pytest.mark.parametrize("text", ["true", "depth", "(", "depth % 0 = 1"])
def test_no_timer_is_left_running(table: pa.Table, text: str) -> None:
    before = threading.active_count()
    with contextlib.suppress(UserError):
        select(table, text)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "undefined",
    [
        *("ln(0 - depth)", "sqrt(0 - depth)", "log10(0 - 1)", "pow(0 - depth, 0.5)", "(0 - depth) ** 0.5"),
        *("(depth - depth) / 0", "1e308 * 10 - 1e308 * 10", "abs(ln(0 - 2))", "1 + sqrt(0 - depth) * 2"),
    ],
)
def test_what_is_not_defined_meets_no_condition_and_not_its_contrary(table: pa.Table, undefined: str) -> None:
    for condition in (
        "{} > 0",
        "{} <= 0",
        "{} = {}",
        "{} <> 1",
        "not {} > 0",
        "{} between 0 and 1",
        "0 < {}",
        "{} in (1, 2)",
    ):
        assert not len(select(table, condition.replace("{}", undefined))), condition
    assert len(select(table, f"{undefined} is null")) == len(table)
    assert len(select(table, f"coalesce({undefined}, 1) = 1")) == len(table)


def test_what_is_defined_is_as_it_was(table: pa.Table) -> None:
    for condition, holds in {
        "ln(depth) >= 0": lambda depth: True,
        "(depth + 1) * 2 > 6 and (depth - 1) / 2 < 3": lambda depth: (depth + 1) * 2 > 6 and (depth - 1) / 2 < 3,
        "depth % 2 = 0 or -depth > 0 - 2": lambda depth: depth % 2 == 0 or -depth > -2,
        "depth + 9007199254740993 > 9007199254740993": lambda depth: True,
    }.items():
        found = select(table, condition)["depth"].to_pylist()
        assert found == [depth for depth in table["depth"].to_pylist() if holds(depth)], condition


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topology = 'resnett'", ["no row has 'resnett' as topology. Did you mean 'resnet'?"]),
        ("topology = 'rmt'", ["no row has 'rmt' as topology. Did you mean 'rmt(keys=64)'?"]),  # the beginning of one
        ("topology in ('it''s', 'nonee')", ["no row has 'nonee' as topology. Did you mean 'none'?"]),
        (
            "topology = 'none' and depth = 60 or topology = 'nonee'",
            ["no row has 'nonee' as topology. Did you mean 'none'?"],
        ),
        ("topology like 'resnett%'", []),
        ("topology like 'resnet_'", []),
        ("topology = 'none' and 'resnett' like 'x'", []),
        ("regexp_matches(topology, 'resnet.')", []),
        ("topology not in ('resnett') and depth > 60", []),
        ("topology <> 'resnett' and depth > 60", []),
        ("depth > 60 and Topology='resnett'", ["no row has 'resnett' as topology. Did you mean 'resnet'?"]),
        ("topology = 'none' and depth = 12345", []),
        ("topology in ('none', 'nonee')", []),  # it has an answer
        ("depth > 100", []),
    ],
)
def test_where_nothing_is_found_a_text_that_is_nearly_there_is_named(
    table: pa.Table, text: str, said: list[str]
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        select(table, text)
    assert [str(one.message) for one in caught] == said


@pytest.mark.parametrize("text", ["hyper(streams=4)", " hyper ", "hyper(dynamic=true, streams=4)"])
def test_a_wiring_that_is_there_under_its_one_text_is_named(text: str) -> None:
    there = pa.table({"topology": ["hyper(streams=2)", "hyper", "rmt((", "resnet"]})
    with pytest.warns(Notice, match=r"Did you mean 'hyper'\?"):
        assert not len(select(there, f"topology = '{text}'"))
    with pytest.warns(Notice, match=r"Did you mean 'rmt\(\('\?"):
        assert not len(select(there, "topology = 'rmt((('"))
