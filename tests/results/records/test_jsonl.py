"""JSON Lines keep all rows; bad lines are reported and hide no others."""

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from expect import check, raises
from grouped import grouped
from results.records import jsonl
from results.records.row import Row
from search_spaces.support.errors import Kind

MakeRow = Callable[..., Row]
RandomRows = Callable[[int, int], list[Row]]

NAMES = ("rows.jsonl", "rows.jsonl.gz")


@pytest.mark.parametrize("name", NAMES)
def test_written_rows_are_read_back_equal(random_rows: RandomRows, tmp_path: Path, name: str) -> None:
    rows = random_rows(3, 300)
    jsonl.write(rows, tmp_path / name)
    assert jsonl.read(tmp_path / name) == (rows, [])


@pytest.mark.parametrize("name", NAMES)
def test_rows_written_again_have_the_same_bytes(random_rows: RandomRows, tmp_path: Path, name: str) -> None:
    jsonl.write(random_rows(4, 100), tmp_path / name)
    before = (tmp_path / name).read_bytes()
    copy = tmp_path / f"again-{name}"
    jsonl.write(jsonl.read(tmp_path / name)[0], copy)
    assert copy.read_bytes() == before


def test_gzip_file_is_smaller_and_has_the_same_rows(random_rows: RandomRows, tmp_path: Path) -> None:
    for name in NAMES:
        jsonl.write(random_rows(5, 100), tmp_path / name)
    plain, gzip_bytes = ((tmp_path / name).read_bytes() for name in NAMES)
    assert gzip_bytes[3:8] == bytes(5)  # no name and no time: equal rows give equal files
    assert len(gzip_bytes) < len(plain) / 2
    assert gzip.decompress(gzip_bytes) == plain


def test_no_rows_make_an_empty_file(tmp_path: Path) -> None:
    for name in NAMES:
        jsonl.write([], tmp_path / name)
        assert jsonl.read(tmp_path / name) == ([], [])


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def good(make_row: MakeRow) -> str:
    return make_row(metrics={"loss": 0.5}, recipe={"lr": 0.1}).to_json()


def field(name: str, value: str) -> Callable[[str], bytes]:
    """A change of a record's text: another field after the seed."""
    return lambda text: text.replace('"seed": 0', f'"seed": 0, "{name}": {value}').encode()


def loss(value: str) -> Callable[[str], bytes]:
    return lambda text: text.replace("0.5", value).encode()


BAD: dict[str, tuple[Callable[[str], bytes], Kind, dict[str, Any]]] = {
    "no JSON": (lambda text: b"task,seed", "bad-syntax", {"character": 1}),
    "a truncated line": (lambda text: text[: len(text) // 2].encode(), "bad-syntax", {"character": ANY}),
    "two records": (lambda text: f"{text}{text}".encode(), "bad-syntax", {"character": ANY}),
    "an array": (lambda text: b"[1]", "wrong-type", {"type": "list"}),
    "a number": (lambda text: b"7", "wrong-type", {"value": 7}),
    "null": (lambda text: b"null", "wrong-type", {"value": None}),
    "an empty object": (lambda text: b"{}", "missing-value", {"option": "task"}),
    "a missing field": (lambda text: text.replace('"seed": 0, ', "").encode(), "missing-value", {"option": "seed"}),
    "another type": (
        lambda text: text.replace('"seed": 0', '"seed": "0"').encode(),
        "wrong-type",
        {"option": "seed", "value": "0"},
    ),
    "an unknown field": (field("sed", "0"), "unknown-name", {"option": "field", "value": "sed"}),
    "a field twice": (field("seed", "1"), "duplicate", {"option": "field", "value": "seed"}),
    "NaN": (loss("NaN"), "out-of-range", {"value": "NaN"}),
    "Infinity": (loss("-Infinity"), "out-of-range", {"value": "-Infinity"}),
    "a float without end": (loss("1e999"), "out-of-range", {"value": "1e999"}),
    "a huge integer": (loss("1" + "0" * 30), "out-of-range", {"value": "1" + "0" * 30}),
    "an integer of 10000 digits": (loss("9" * 10**4), "out-of-range", {"value": "9" * 10**4}),
    "an integer of 65 bits": (loss(str(2**63)), "out-of-range", {"value": str(2**63)}),
    "nested too deep to parse": (lambda text: text.replace("0.1", nested(10**5)).encode(), "too-large", {"most": 32}),
    "nested too deep to write": (lambda text: text.replace("0.1", nested(100)).encode(), "too-large", {"most": 32}),
    "Latin-1": (lambda text: text.replace("digits", "é").encode("latin-1"), "bad-syntax", {"byte": 11}),
    "UTF-16": (lambda text: text.encode("utf-16"), "bad-syntax", {"byte": 1}),
    "a zero byte": (lambda text: b"\0", "bad-syntax", {"character": 1}),
    "another version": (
        lambda text: text.replace('"row_version": 1', '"row_version": 2').encode(),
        "mismatch",
        {"option": "row_version", "value": 2, "expected": 1},
    ),
    "a long line": (
        lambda text: b'"' + b"x" * 2_000_000 + b'"',
        "too-large",
        {"option": "line", "size": 2_000_003, "most": 2**19},
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_bad_lines_are_named_and_the_others_are_read(
    make_row: MakeRow, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 2**19)
    text = good(make_row)
    with grouped() as case:
        for mistake, (make, kind, fields) in BAD.items():
            with case(mistake):
                content = b"\n".join((text.encode(), make(text), text.encode(), make(text), b""))
                (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
                rows, bad = jsonl.read(tmp_path / name)
                assert rows == [Row.from_json(text)] * 2
                assert [bad_line.number for bad_line in bad] == [2, 4]
                for bad_line in bad:
                    check(bad_line.error, kind, **fields)
                    assert str(bad_line).isprintable()
                    assert len(str(bad_line)) < 300


def test_every_truncation_is_reported(make_row: MakeRow, tmp_path: Path) -> None:
    content = f"{good(make_row)}\n{good(make_row)}\n".encode()
    for length in range(len(content) // 2 + 1, len(content) - 1):
        (tmp_path / "rows.jsonl").write_bytes(content[:length])
        rows, (bad,) = jsonl.read(tmp_path / "rows.jsonl")
        assert (len(rows), bad.number) == (1, 2)
        check(bad.error, "bad-syntax", last=True)
    (tmp_path / "rows.jsonl").write_bytes(content[:-1])
    assert len(jsonl.read(tmp_path / "rows.jsonl")[0]) == 2


def test_byte_order_marks_and_blank_lines_are_skipped(make_row: MakeRow, tmp_path: Path) -> None:
    row = Row.from_json(good(make_row))
    content = f"\ufeff{good(make_row)}\r\n\r\n \t \n\n{good(make_row)}\r\n".encode()
    (tmp_path / "rows.jsonl").write_bytes(content)
    assert jsonl.read(tmp_path / "rows.jsonl") == ([row, row], [])


def test_truncated_gzip_file_gives_the_rows_before_the_cut(random_rows: RandomRows, tmp_path: Path) -> None:
    rows = random_rows(6, 200)
    path = tmp_path / "rows.jsonl.gz"
    jsonl.write(rows, path)
    whole = path.read_bytes()
    for share in (0.2, 0.5, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        rows_before, bad = jsonl.read(path)
        assert 0 < len(rows_before) < 200
        assert rows_before == rows[: len(rows_before)]
        check(bad[-1].error, "bad-file", cause="EOFError")


def test_flipped_bit_in_a_gzip_file_is_reported(random_rows: RandomRows, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    jsonl.write(random_rows(7, 50), path)
    content = bytearray(path.read_bytes())
    for place in range(12, len(content), len(content) // 40):
        damaged = bytearray(content)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        assert jsonl.read(path)[1]


def test_plain_text_named_gz_is_a_bad_line(make_row: MakeRow, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl.gz").write_text(good(make_row))
    rows, (bad,) = jsonl.read(tmp_path / "rows.jsonl.gz")
    assert rows == []
    assert bad.number == 1


def test_gzip_file_is_read_up_to_the_limit_of_unpacked_size(
    make_row: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_FILE", 2**20)
    monkeypatch.setattr(jsonl, "MAX_LINE", 2**16)
    file = io.BytesIO()
    with gzip.GzipFile(fileobj=file, mode="wb") as stream:
        stream.write(f"{good(make_row)}\n".encode())
        for _ in range(8):
            stream.write(b"\0" * 2**20)
    (tmp_path / "rows.jsonl.gz").write_bytes(file.getvalue())
    rows, (bad,) = jsonl.read(tmp_path / "rows.jsonl.gz")
    assert len(rows) == 1
    check(bad.error, "too-large", option="file", most=2**20)


def test_files_that_cannot_be_read_or_written_are_refused(make_row: MakeRow, tmp_path: Path) -> None:
    for name in ("none.jsonl", "none.jsonl.gz", "no/such/folder.jsonl"):
        with raises("missing-file", path=str(tmp_path / name)):
            jsonl.read(tmp_path / name)
    with raises("bad-file", path=str(tmp_path)):
        jsonl.read(tmp_path)
    for path in (tmp_path / "no/such/folder.jsonl", tmp_path):
        with raises("unwritable", path=str(path)):
            jsonl.write([make_row()], path)


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_cannot_be_written_leave_the_file_as_it_was(make_row: MakeRow, tmp_path: Path, name: str) -> None:
    jsonl.write([make_row()], tmp_path / name)
    before = (tmp_path / name).read_bytes()
    with raises("out-of-range", option="row.metrics.loss"):
        jsonl.write([make_row(seed=1), make_row(metrics={"loss": float("nan")})], tmp_path / name)
    assert (tmp_path / name).read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_writing_to_a_link_keeps_the_link(make_row: MakeRow, tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "rows.jsonl")
    jsonl.write([make_row()], tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert jsonl.read(tmp_path / "rows.jsonl")[0] == [make_row()]


def test_pipe_is_written_to_and_not_replaced(make_row: MakeRow, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    jsonl.write([make_row()], tmp_path / "pipe")
    assert Row.from_json(os.read(reading, 10**5).decode()) == make_row()
    os.close(reading)
    assert (tmp_path / "pipe").is_fifo()


def test_standard_output_gets_the_same_bytes_as_a_file(
    random_rows: RandomRows, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    jsonl.write(random_rows(8, 20))
    jsonl.write(random_rows(8, 20), tmp_path / "rows.jsonl")
    assert capfdbinary.readouterr().out == (tmp_path / "rows.jsonl").read_bytes()


def test_line_is_plain_json(make_row: MakeRow, tmp_path: Path) -> None:
    jsonl.write([make_row(metrics={"loss": 0.5})], tmp_path / "rows.jsonl")
    (line,) = (tmp_path / "rows.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["metrics"] == {"loss": 0.5}
    assert record["architecture"]["depth"] == 2


def test_rows_are_read_and_queried_without_heavy_modules() -> None:
    """One process does each step and prints the forbidden modules that it has loaded."""
    script = """
import sys
import results.records.row, results.records.jsonl
print(*{"pyarrow", "numpy", "torch", "optuna", "pandas", "duckdb"} & sys.modules.keys())
import results.records.table
print(*{"torch", "optuna", "pandas", "duckdb"} & sys.modules.keys())
from results.query.grouping import front
from results.query.mixtures import mixtures
from results.query.query import query
from results.records import export, table
from results.records.row import Row, Costs
from search_spaces.architecture.architecture import Architecture
rows = [
    Row(task="t", task_version=1, architecture=Architecture(depth=depth, width=4, hidden=4), seed=seed, preset="p",
        status="complete", metrics={"accuracy": depth / 9}, costs=Costs(flops=depth))
    for depth in (1, 2, 3) for seed in (0, 1)
]
rows = table.from_rows(rows)
small = query(rows, where="flops < 3", order_by=["flops desc"])
assert len(front(small, {"accuracy": "max", "flops": "min"})) == 2 and mixtures(small)
export.to_csv(small), export.to_json(small), export.to_parquet(small), table.from_rows([])
print(*{"pandas", "torch"} & sys.modules.keys())
import nas
nas.load_table("goal-point-maze")
print(*{"torch"} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
