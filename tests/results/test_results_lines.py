import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from results import lines
from results.row import Row
from search_spaces.errors import UserError

MakeRow = Callable[..., Row]
RandomRows = Callable[[int, int], list[Row]]

NAMES = ("rows.jsonl", "rows.jsonl.gz")


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_read_as_they_were_written(random_rows: RandomRows, tmp_path: Path, name: str) -> None:
    rows = random_rows(3, 300)
    lines.write(rows, tmp_path / name)
    assert lines.read(tmp_path / name) == (rows, [])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_and_written_again_has_the_same_bytes(random_rows: RandomRows, tmp_path: Path, name: str) -> None:
    lines.write(random_rows(4, 100), tmp_path / name)
    before = (tmp_path / name).read_bytes()
    again = tmp_path / f"again-{name}"
    lines.write(lines.read(tmp_path / name)[0], again)
    assert again.read_bytes() == before


def test_a_packed_file_is_smaller_and_says_the_same(random_rows: RandomRows, tmp_path: Path) -> None:
    for name in NAMES:
        lines.write(random_rows(5, 100), tmp_path / name)
    plain, packed = ((tmp_path / name).read_bytes() for name in NAMES)
    assert packed[3:8] == bytes(5)  # neither a name nor a time, which would make equal rows differ
    assert len(packed) < len(plain) / 2
    assert gzip.decompress(packed) == plain


def test_no_rows_are_an_empty_file(tmp_path: Path) -> None:
    for name in NAMES:
        lines.write([], tmp_path / name)
        assert lines.read(tmp_path / name) == ([], [])


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def good(make_row: MakeRow) -> str:
    return make_row(metrics={"loss": 0.5}, recipe={"lr": 0.1}).to_json()


BAD: dict[str, tuple[Callable[[str], bytes], str]] = {
    "no JSON": (lambda text: b"task,seed", "not JSON"),
    "a truncated line": (lambda text: text[: len(text) // 2].encode(), "not JSON"),
    "two records": (lambda text: f"{text}{text}".encode(), "Extra data"),
    "an array": (lambda text: b"[1]", "must be an object"),
    "a number": (lambda text: b"7", "must be an object"),
    "null": (lambda text: b"null", "must be an object"),
    "an empty object": (lambda text: b"{}", "has no 'task'"),
    "a missing field": (lambda text: text.replace('"seed": 0, ', "").encode(), "has no 'seed'"),
    "a field of another type": (lambda text: text.replace('"seed": 0', '"seed": "0"').encode(), "'seed' must be"),
    "an unknown field": (lambda text: text.replace('"seed": 0', '"seed": 0, "sed": 0').encode(), "unknown field"),
    "a field twice": (lambda text: text.replace('"seed": 0', '"seed": 0, "seed": 1').encode(), "'seed' twice"),
    "NaN": (lambda text: text.replace("0.5", "NaN").encode(), "NaN"),
    "Infinity": (lambda text: text.replace("0.5", "-Infinity").encode(), "Infinity"),
    "a float without end": (lambda text: text.replace("0.5", "1e999").encode(), "beyond 64 bits"),
    "a huge integer": (lambda text: text.replace("0.5", "1" + "0" * 30).encode(), "beyond 64 bits"),
    "an integer of 10000 digits": (lambda text: text.replace("0.5", "9" * 10**4).encode(), "beyond 64 bits"),
    "an integer of 65 bits": (lambda text: text.replace("0.5", str(2**63)).encode(), "beyond 64 bits"),
    "nested too deep to parse": (lambda text: text.replace("0.1", nested(10**5)).encode(), "deeper"),
    "nested too deep to write": (lambda text: text.replace("0.1", nested(100)).encode(), "deeper"),
    "Latin-1": (lambda text: text.replace("digits", "é").encode("latin-1"), "not UTF-8: byte"),
    "UTF-16": (lambda text: text.encode("utf-16"), "not UTF-8: byte 1"),
    "a zero byte": (lambda text: b"\0", "not JSON"),
    "a newer version": (lambda text: text.replace('"row_version": 2', '"row_version": 3').encode(), "newer"),
    "a long line": (lambda text: b'"' + b"x" * 50_000_000 + b'"', "50000003 bytes, and may have 16777216"),
}


@pytest.mark.parametrize(("make", "reason"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", NAMES)
def test_a_bad_line_is_named_and_hides_no_other(
    make_row: MakeRow, tmp_path: Path, make: Callable[[str], bytes], reason: str, name: str
) -> None:
    text = good(make_row)
    content = b"\n".join((text.encode(), make(text), text.encode(), make(text), b""))
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
    rows, bad = lines.read(tmp_path / name)
    assert rows == [Row.from_json(text)] * 2
    assert [one.number for one in bad] == [2, 4]
    assert all(reason in str(one) for one in bad)
    assert all(str(one).isprintable() and len(str(one)) < 300 for one in bad)


def test_every_byte_that_is_cut_off_is_noticed(make_row: MakeRow, tmp_path: Path) -> None:
    content = f"{good(make_row)}\n{good(make_row)}\n".encode()
    for left in range(len(content) // 2 + 1, len(content) - 1):
        (tmp_path / "rows.jsonl").write_bytes(content[:left])
        rows, (bad,) = lines.read(tmp_path / "rows.jsonl")
        assert (len(rows), bad.number) == (1, 2)
        assert "the file ends with this line" in bad.reason
    (tmp_path / "rows.jsonl").write_bytes(content[:-1])
    assert len(lines.read(tmp_path / "rows.jsonl")[0]) == 2


def test_what_editors_put_between_lines_is_passed_over(make_row: MakeRow, tmp_path: Path) -> None:
    row = Row.from_json(good(make_row))
    content = f"\ufeff{good(make_row)}\r\n\r\n \t \n\n{good(make_row)}\r\n".encode()
    (tmp_path / "rows.jsonl").write_bytes(content)
    assert lines.read(tmp_path / "rows.jsonl") == ([row, row], [])


@pytest.mark.parametrize("left", [0.2, 0.5, 0.9])
def test_a_packed_file_that_was_cut_gives_what_it_has(random_rows: RandomRows, tmp_path: Path, left: float) -> None:
    rows = random_rows(6, 400)
    path = tmp_path / "rows.jsonl.gz"
    lines.write(rows, path)
    path.write_bytes(path.read_bytes()[: int(left * path.stat().st_size)])
    found, bad = lines.read(path)
    assert 0 < len(found) < 400
    assert found == rows[: len(found)]
    assert "damaged from here on" in bad[-1].reason


def test_a_packed_file_with_a_flipped_bit_is_noticed(random_rows: RandomRows, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    lines.write(random_rows(7, 50), path)
    content = bytearray(path.read_bytes())
    for place in range(12, len(content), len(content) // 40):
        damaged = bytearray(content)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        assert lines.read(path)[1]


def test_what_is_not_packed_is_a_bad_line(make_row: MakeRow, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl.gz").write_text(good(make_row))
    rows, (bad,) = lines.read(tmp_path / "rows.jsonl.gz")
    assert rows == []
    assert bad.number == 1


def test_a_small_file_that_unpacks_to_a_big_one_is_read_so_far(
    make_row: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MOST_FILE", 2**20)
    monkeypatch.setattr(lines, "MOST_LINE", 2**16)
    file = io.BytesIO()
    with gzip.GzipFile(fileobj=file, mode="wb") as packed:
        packed.write(f"{good(make_row)}\n".encode())
        for _ in range(100):
            packed.write(b"\0" * 2**20)
    (tmp_path / "rows.jsonl.gz").write_bytes(file.getvalue())
    rows, (bad,) = lines.read(tmp_path / "rows.jsonl.gz")
    assert len(rows) == 1
    assert bad.reason == "the file has more than 1 MiB, and is not read from here on"


@pytest.mark.parametrize("name", ["none.jsonl", "none.jsonl.gz", ".", "no/such/folder.jsonl"])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be read: "):
        lines.read(tmp_path / name)


@pytest.mark.parametrize("name", ["no/such/folder.jsonl", "."])
def test_a_file_that_cannot_be_written_is_one_line(make_row: MakeRow, tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be written: "):
        lines.write([make_row()], tmp_path / name)


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_cannot_be_written_leave_the_file_as_it_was(make_row: MakeRow, tmp_path: Path, name: str) -> None:
    lines.write([make_row()], tmp_path / name)
    before = (tmp_path / name).read_bytes()
    with pytest.raises(ValueError, match="nan"):
        lines.write([make_row(seed=1), make_row(metrics={"loss": float("nan")})], tmp_path / name)
    assert (tmp_path / name).read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_a_link_stays_a_link(make_row: MakeRow, tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "rows.jsonl")
    lines.write([make_row()], tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert lines.read(tmp_path / "rows.jsonl")[0] == [make_row()]


def test_what_is_no_file_is_written_to_and_not_replaced(make_row: MakeRow, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    lines.write([make_row()], tmp_path / "pipe")
    assert Row.from_json(os.read(reading, 10**5).decode()) == make_row()
    os.close(reading)
    assert (tmp_path / "pipe").is_fifo()


def test_standard_output_gets_what_a_file_would_get(
    random_rows: RandomRows, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    lines.write(random_rows(8, 20))
    lines.write(random_rows(8, 20), tmp_path / "rows.jsonl")
    assert capfdbinary.readouterr().out == (tmp_path / "rows.jsonl").read_bytes()


def test_a_line_is_what_other_programs_read(make_row: MakeRow, tmp_path: Path) -> None:
    lines.write([make_row(metrics={"loss": 0.5})], tmp_path / "rows.jsonl")
    (line,) = (tmp_path / "rows.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["metrics"] == {"loss": 0.5}
    assert record["architecture"]["depth"] == 2


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("results.row", ("pyarrow", "numpy", "torch", "optuna", "pandas", "duckdb")),
        ("results.lines", ("pyarrow", "numpy", "torch", "optuna", "pandas", "duckdb")),
        ("results.table", ("torch", "optuna", "pandas", "duckdb")),
    ],
)
def test_import_is_light(module: str, without: tuple[str, ...]) -> None:
    script = f"import {module}, sys; print(*(name for name in {without} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
