"""Foreign data, as tests/test_security.py promises: sizes are bounded, and only files are read."""

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageFile

import nas
from results import lines
from results.row import Row
from results.strict_json import BadRow, parse
from search_spaces.checkpoint import RECORD, read_record
from search_spaces.errors import UserError
from tasks.image_shards import listed, shard_source
from tasks.image_sources import source
from tasks.language.corpus import folder_corpus
from tasks.language.shards import MOST_LINE, JsonShard, read
from tasks.language.tokenizer import tokenizer_at
from tasks.lra.pathfinder import _pixels
from toy_rows import a_row


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "9" * 100_000, '{"seed": 1e999}', "{}", "\0", '"' + "a" * 2**25 + '"']
)
def test_rows_that_nest_without_end_or_hold_huge_numbers_are_bad_lines(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f"{a_row().to_json()}\n{text}\n{a_row(seed=1).to_json()}\n")
    study = nas.load(source=file)
    assert [row.seed for row in study.rows()] == [0, 1]
    assert len(study.bad) == 1
    assert study.bad[0].startswith(f"{file}, line 2: ")
    with pytest.raises(BadRow):
        Row.from_json(text)


def test_a_text_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(BadRow, match="may have"):
        parse(" " * (16 * 2**20 + 1))


def memory_of(program: str, *words: str) -> int:
    """Bytes that a process held at most while it ran a program, beyond what the same imports hold."""
    measure = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{measure}", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1]) * (1 if sys.platform == "darwin" else 1024)


def bomb_of(path: Path, start: bytes, filling: bytes, megabytes: int) -> Path:
    """A packed file of one line that unpacks to so much."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(megabytes):
            file.write(filling * (2**20 // len(filling)))
    return path


@pytest.mark.parametrize(
    ("program", "start"),
    [
        (
            "from pathlib import Path; import sys; from results import lines; lines.read(Path(sys.argv[1]))",
            b'{"task": "',
        ),
        (
            "import sys; from pathlib import Path; from tasks.language.shards import JsonShard, read\n"
            "list(read(JsonShard(Path(sys.argv[1]), 'text', 'bomb')))",
            b'{"text": "',
        ),
    ],
    ids=("rows", "documents"),
)
def test_a_small_packed_line_takes_no_great_memory(tmp_path: Path, program: str, start: bytes) -> None:
    little = bomb_of(tmp_path / "little.jsonl.gz", start, b"a", 1)
    bomb = bomb_of(tmp_path / "bomb.jsonl.gz", start, b"a", 600)
    assert bomb.stat().st_size < 2**22
    assert memory_of(program, str(bomb)) - memory_of(program, str(little)) < 300 * 2**20


def test_a_document_that_is_too_long_is_passed_over_and_keeps_its_number(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    with path.open("wb") as file:
        file.write(b'{"text": "one"}\n{"text": "' + b"a" * MOST_LINE + b'"}\n{"text": "three"}\n')
    with pytest.warns(UserWarning, match="line 2 has no text"):
        assert list(read(JsonShard(path, "text", str(path)))) == [(0, "one"), (1, None), (2, "three")]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"model":' * 100_000, "{", '{"version": "1.0", "added_tokens": 7}', "\0" * 10, "\u202e"]
)
def test_a_hostile_tokenizer_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(UserError, match=r"is no tokenizer\.json") as refused:
        tokenizer_at(tmp_path)
    assert len(str(refused.value)) < 600


def test_huge_files_are_not_read(tmp_path: Path) -> None:
    for name in ("tokenizer.json", RECORD):
        with (tmp_path / name).open("wb") as file:
            file.truncate(2**40)  # of holes
    with pytest.raises(UserError, match="and may have"):
        tokenizer_at(tmp_path)
    with pytest.raises(UserError, match="and may have"):
        read_record(tmp_path)


@pytest.mark.parametrize("text", ['{"architecture":' * 100_000, "[]", '"a"', '{"architecture": []}', "7"])
def test_a_hostile_record_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORD).write_text(text)
    with pytest.raises(UserError, match="cannot be read as a checkpoint's record"):
        read_record(tmp_path)


def test_a_pipe_among_data_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    for name in ("train.jsonl", "train.jsonl.gz", "train.parquet", "tokenizer.json", RECORD, "rows.jsonl"):
        os.mkfifo(tmp_path / name)
    os.mkfifo(tmp_path / "_info.json")
    for opened in (
        lambda: folder_corpus(tmp_path, "text"),
        lambda: tokenizer_at(tmp_path),
        lambda: read_record(tmp_path),
        lambda: listed(tmp_path, ("train",)),
        lambda: lines.read(tmp_path / "rows.jsonl"),
    ):
        with pytest.raises(UserError, match="data must be in files"):
            opened()


def test_a_pipe_among_images_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "train" / "cat").mkdir(parents=True)
    os.mkfifo(tmp_path / "train" / "cat" / "1.png")
    with pytest.raises(UserError, match="data must be in files"):
        source(tmp_path, "train")


def test_links_to_files_are_followed_as_in_the_hubs_cache(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "0a1b").write_text('{"text": "some text"}\n')
    folder = tmp_path / "snapshots" / "main"
    folder.mkdir(parents=True)
    (folder / "train.jsonl").symlink_to("../../blobs/0a1b")
    (tmp_path / "link").symlink_to(folder)
    corpus = folder_corpus(tmp_path / "link", "text")
    assert corpus.fingerprint == folder_corpus(folder, "text").fingerprint
    (folder / "train.jsonl").unlink()
    (folder / "train.jsonl").symlink_to("/dev/zero")
    with pytest.raises(UserError, match="data must be in files"):
        folder_corpus(folder, "text")


def member(name: str, **changes: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for field, value in changes.items():
        setattr(info, field, value)
    return info


@pytest.mark.parametrize(
    "hostile",
    [
        member("../outside.png"),
        member("/absolute.png"),
        member("cat/../../outside.png"),
        member("cat/link.png", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("cat/hard.png", type=tarfile.LNKTYPE, linkname="cat/1.png"),
        member("cat/pipe.png", type=tarfile.FIFOTYPE),
        member("cat/device.png", type=tarfile.CHRTYPE),
        member("cat/backwards.png", pax_headers={"size": "-1536"}),
        member("cat/holes.png", pax_headers={"GNU.sparse.size": str(2**40), "GNU.sparse.map": f"{2**40},0"}),
    ],
    ids=lambda info: str(info.name),
)
@pytest.mark.parametrize("is_shard", [False, True], ids=["folder", "shard"])
def test_an_archive_with_more_than_files_below_it_is_refused(
    tmp_path: Path, hostile: tarfile.TarInfo, is_shard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path.parent / "cache"))
    picture = io.BytesIO()
    Image.new("RGB", (4, 4)).save(picture, "png")
    with tarfile.open(tmp_path / "train.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        good = member("cat/1.png", size=len(picture.getvalue()))
        tar.addfile(good, io.BytesIO(picture.getvalue()))
        tar.addfile(hostile)
    with pytest.raises(UserError, match="a tar file of images holds files and folders below its own"):
        read_as_shard(tmp_path) if is_shard else source(tmp_path, "train")
    assert {path.name for path in tmp_path.iterdir()} == {"train.tar", *(["_info.json"] if is_shard else [])}


def test_a_shard_with_headers_that_make_no_sense_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "cache"))
    with tarfile.open(tmp_path / "train.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member("cat/1.png", pax_headers={"GNU.sparse.size": "z", "GNU.sparse.map": "x"}))
    with pytest.raises(UserError, match="cannot be read as a tar file"):
        read_as_shard(tmp_path)


def read_as_shard(folder: Path) -> None:
    listing = {"splits": {"train": {"filenames": ["train.tar"], "shard_lengths": [1]}}}
    (folder / "_info.json").write_text(json.dumps(listing))
    shard_source(folder, ("train",), 10)


@pytest.mark.parametrize("name", ["../a.tar", "/etc/a.tar", "pipe:touch it-ran", "{0..999999999}.tar", "a::b", "a b;c"])
def test_a_listing_of_shards_names_files_below_it_and_no_commands(tmp_path: Path, name: str) -> None:
    (tmp_path / "_info.json").write_text(json.dumps({"splits": {"train": {"filenames": [name], "shard_lengths": [1]}}}))
    with pytest.raises(UserError, match="a shard is a file below its folder"):
        listed(tmp_path, ("train",))


def test_an_image_that_unpacks_to_a_huge_one_is_refused_and_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("L", (12_000, 12_000)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda image: pytest.fail("it was unpacked"))
    with pytest.raises(UserError, match="an image must be 32 x 32 grey bytes, got 12000 x 12000"):
        _pixels(tmp_path / "bomb.png")
