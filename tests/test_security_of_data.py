"""Limits on foreign data, as promised in tests/test_security.py: bounded sizes, and only regular files."""

import gzip
import io
import json
import os
import struct
import tarfile
import tracemalloc
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageFile

import nas
from expect import raises, warns
from grouped import grouped
from results.records import jsonl
from results.records.row import Row
from results.records.strict_json import BadRow, parse
from search_spaces.architecture.checkpoint import RECORD, read_record
from tasks.data.image_shards import read_listing, shard_source
from tasks.data.image_sources import image_source
from tasks.language import shards
from tasks.language.corpus import folder_corpus
from tasks.language.shards import JsonShard, read
from tasks.language.tokenizer import tokenizer_at
from tasks.lra.pathfinder import _pixels
from toy_rows import a_row


def test_hostile_rows_are_bad_lines(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    with grouped() as case:
        for text in (
            *("[" * 100_000, '{"a":' * 100_000, "9" * 100_000, '{"seed": 1e999}', "{}", "\0"),
            '"' + "a" * 2**25 + '"',
        ):
            with case(text[:20]):
                file.write_text(f"{a_row().to_json()}\n{text}\n{a_row(seed=1).to_json()}\n")
                with warns("skipped", study=str(file)):
                    study = nas.load(source=file)
                assert [row.seed for row in study.rows()] == [0, 1]
                assert len(study.unreadable) == 1
                assert study.unreadable[0].startswith(f"{file}, line 2: ")
                with pytest.raises(BadRow):
                    Row.from_json(text)


def test_text_that_is_too_long_is_not_parsed() -> None:
    with raises("too-large", size=16 * 2**20 + 1, most=16 * 2**20):
        parse(" " * (16 * 2**20 + 1))


def test_packed_bomb_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that unpacks to 64 times the limit of a line."""
    bomb = tmp_path / "bomb.jsonl.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(b'{"text": "' + b"a" * 2**25)
    assert bomb.stat().st_size < 2**18
    for module in (jsonl, shards):
        monkeypatch.setattr(module, "MAX_LINE", 2**19)
    readers: tuple[Callable[[], object], ...] = (
        lambda: jsonl.read(bomb),
        lambda: list(read(JsonShard(bomb, "text", "bomb"))),
    )
    for reader in readers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the skipped line
            tracemalloc.start()
            reader()
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert 2**19 < most < 2**23


def test_document_that_is_too_long_is_skipped_and_keeps_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MAX_LINE", 2**16)
    path = tmp_path / "train.jsonl"
    with path.open("wb") as file:
        file.write(b'{"text": "one"}\n{"text": "' + b"a" * 2**17 + b'"}\n{"text": "three"}\n')
    with warns("skipped", shard=str(path), line=2):
        assert list(read(JsonShard(path, "text", str(path)))) == [(0, "one"), (1, None), (2, "three")]


def test_hostile_tokenizer_is_refused_in_a_line(tmp_path: Path) -> None:
    texts = ("[" * 100_000, '{"model":' * 100_000, "{", '{"version": "1.0", "added_tokens": 7}', "\0" * 10, "\u202e")
    with grouped() as case:
        for text in texts:
            with case(text[:20]):
                (tmp_path / "tokenizer.json").write_text(text)
                with raises("bad-file", path=str(tmp_path / "tokenizer.json")) as error:
                    tokenizer_at(tmp_path)
                assert len(str(error.value)) < 600


def test_huge_files_are_not_read(tmp_path: Path) -> None:
    for name in ("tokenizer.json", RECORD):
        with (tmp_path / name).open("wb") as file:
            file.truncate(2**40)  # a sparse file
    with raises("too-large", path=str(tmp_path / "tokenizer.json"), size=2**40):
        tokenizer_at(tmp_path)
    with raises("too-large", path=str(tmp_path / RECORD), size=2**40):
        read_record(tmp_path)


def test_hostile_record_is_refused_in_a_line(tmp_path: Path) -> None:
    with grouped() as case:
        for text in ('{"architecture":' * 50_000, "[]", '"a"', '{"architecture": []}', "7"):
            with case(text[:20]):
                (tmp_path / RECORD).write_text(text)
                with raises("bad-file", path=str(tmp_path / RECORD)):
                    read_record(tmp_path)


def test_pipe_among_data_is_refused_without_waiting(tmp_path: Path) -> None:
    for name in ("train.jsonl", "train.jsonl.gz", "train.parquet", "tokenizer.json", RECORD, "rows.jsonl"):
        os.mkfifo(tmp_path / name)
    os.mkfifo(tmp_path / "_info.json")
    for load in (
        lambda: folder_corpus(tmp_path, "text"),
        lambda: tokenizer_at(tmp_path),
        lambda: read_record(tmp_path),
        lambda: read_listing(tmp_path, ("train",)),
        lambda: jsonl.read(tmp_path / "rows.jsonl"),
    ):
        with raises("bad-file") as error:
            load()
        assert Path(error.value.fields["path"]).is_fifo()


def test_pipe_among_images_is_refused_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "train" / "cat").mkdir(parents=True)
    os.mkfifo(tmp_path / "train" / "cat" / "1.png")
    with raises("bad-file", path=str(tmp_path / "train" / "cat" / "1.png")):
        image_source(tmp_path, "train")


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
    with raises("bad-file", path=str(folder / "train.jsonl")):
        folder_corpus(folder, "text")


def member(name: str, **changes: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for field, value in changes.items():
        setattr(info, field, value)
    return info


HOSTILE = (
    member("../outside.png"),
    member("/absolute.png"),
    member("cat/../../outside.png"),
    member("cat/link.png", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    member("cat/hard.png", type=tarfile.LNKTYPE, linkname="cat/1.png"),
    member("cat/pipe.png", type=tarfile.FIFOTYPE),
    member("cat/device.png", type=tarfile.CHRTYPE),
    member("cat/backwards.png", pax_headers={"size": "-1536"}),
    member("cat/holes.png", pax_headers={"GNU.sparse.size": str(2**40), "GNU.sparse.map": f"{2**40},0"}),
)


@pytest.mark.parametrize("is_shard", [False, True], ids=["folder", "shard"])
def test_archive_with_more_than_files_below_it_is_refused(
    tmp_path: Path, is_shard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "cache"))
    picture = io.BytesIO()
    Image.new("RGB", (4, 4)).save(picture, "png")
    with grouped() as case:
        for number, hostile in enumerate(HOSTILE):
            folder = tmp_path / str(number)
            folder.mkdir()
            with tarfile.open(folder / "train.tar", "w", format=tarfile.PAX_FORMAT) as tar:
                good = member("cat/1.png", size=len(picture.getvalue()))
                tar.addfile(good, io.BytesIO(picture.getvalue()))
                tar.addfile(hostile)
            with case(hostile.name):
                with raises("bad-data", path=str(folder / "train.tar"), value=hostile.name):
                    read_as_shard(folder) if is_shard else image_source(folder, "train")
                assert {path.name for path in folder.iterdir()} == {"train.tar", *(["_info.json"] if is_shard else [])}


def test_shard_with_senseless_headers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "cache"))
    with tarfile.open(tmp_path / "train.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member("cat/1.png", pax_headers={"GNU.sparse.size": "z", "GNU.sparse.map": "x"}))
    with raises("bad-file", path=str(tmp_path / "train.tar")):
        read_as_shard(tmp_path)


def read_as_shard(folder: Path) -> None:
    listing = {"splits": {"train": {"filenames": ["train.tar"], "shard_lengths": [1]}}}
    (folder / "_info.json").write_text(json.dumps(listing))
    shard_source(folder, ("train",), 10)


def test_listing_of_shards_names_files_below_it_and_no_commands(tmp_path: Path) -> None:
    for name in ("../a.tar", "/etc/a.tar", "pipe:touch it-ran", "{0..999999999}.tar", "a::b", "a b;c"):
        listing = {"splits": {"train": {"filenames": [name], "shard_lengths": [1]}}}
        (tmp_path / "_info.json").write_text(json.dumps(listing))
        with raises("bad-data", option="filenames", value=name):
            read_listing(tmp_path, ("train",))


def test_huge_image_is_refused_without_unpacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = struct.pack(">IIBBBBB", 12_000, 12_000, 8, 0, 0, 0, 0)  # the only part that is read
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(9))), (b"IEND", b"")]
    parts = (struct.pack(">I", len(c)) + name + c + struct.pack(">I", zlib.crc32(name + c)) for name, c in chunks)
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda image: pytest.fail("it was unpacked"))
    with raises("bad-data", path=str(tmp_path / "bomb.png")):
        _pixels(tmp_path / "bomb.png")
