"""Image shards: webdataset's format, and errors of other files."""

import gzip
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import webdataset
from PIL import Image, UnidentifiedImageError

from expect import raises
from grouped import grouped
from search_spaces.support.errors import Kind
from tasks.data.image_shards import read_listing, shard_source

RANDOM = np.random.default_rng(0)


def picture(kind: str = "jpeg") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(RANDOM.integers(0, 256, (6, 5, 3), dtype=np.uint8)).save(buffer, kind)
    return buffer.getvalue()


def list_shards(folder: Path, shards: Mapping[str, int]) -> None:
    train = {"filenames": [*shards], "shard_lengths": [*shards.values()]}
    (folder / "_info.json").write_text(json.dumps({"splits": {"training": train}}))


def write_shard(folder: Path, files: Sequence[tuple[str, bytes]], images: int = 1) -> Path:
    """Write a folder with one shard of these files."""
    with tarfile.open(folder / "a.tar", "w") as tar:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    list_shards(folder, {"a.tar": images})
    return folder


def read_shards(folder: Path) -> Any:
    return shard_source(folder, ("train", "training"), 10).images


def test_shards_are_read_as_by_webdataset(tmp_path: Path) -> None:
    for name in ("a.tar", "sub/b.tar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with webdataset.TarWriter(str(tmp_path / name)) as sink:
            for number in range(5):
                more = {"json": {"filename": "x"}, "jpg": picture(), "cls": number * 2}
                sink.write({"__key__": f"n01/{number:03d}"} | more)
    list_shards(tmp_path, {"a.tar": 5, "sub/b.tar": 5})
    images = read_shards(tmp_path)
    reader = webdataset.WebDataset([str(tmp_path / "a.tar"), str(tmp_path / "sub/b.tar")], shardshuffle=False)
    expected = [(sample["jpg"], sample["cls"]) for sample in reader.decode("rgb8")]
    assert len(images) == len(expected) == 10
    for index in torch.randperm(10).tolist():  # in any order
        image, label = images[index]
        assert label == expected[index][1]
        assert np.array_equal(np.asarray(image), expected[index][0])


def test_names_order_and_other_files_match_webdataset(tmp_path: Path) -> None:
    files = [
        ("x/one.cls", b"3\n"),
        ("x/one.seg.png", b"no image of its own"),
        ("x/one.JPG", picture()),
        ("x/one.png", picture("png")),
        ("README", b"no dot"),
        ("x.y/two.png", picture("png")),
        ("x.y/two.json", b"{}"),
        ("x.y/two.cls", b"4"),
        ("three.webp", picture("webp")),
        ("three.jpg", picture()),
        ("three.cls", b"5"),
        ("four.webp", picture("webp")),
        ("four.cls", b"6"),
    ]
    images = read_shards(write_shard(tmp_path, files, 4))
    reader = webdataset.WebDataset(str(tmp_path / "a.tar"), shardshuffle=False)
    expected = [*reader.decode("rgb8", only=["jpg", "png", "webp", "cls"]).to_tuple("jpg;png;webp", "cls")]
    assert [images[index][1] for index in range(4)] == [label for _, label in expected] == [3, 4, 5, 6]
    for index, (pixels, _) in enumerate(expected):
        assert np.array_equal(np.asarray(images[index][0]), pixels)


def test_shards_are_scanned_once_and_again_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [("one.jpg", picture()), ("one.cls", b"3")]
    folder = write_shard(tmp_path, files)
    first = read_shards(folder)[0]

    def fail(*_: Any) -> None:
        raise AssertionError("looked up again")

    with monkeypatch.context() as patch:
        patch.setattr("tasks.data.image_shards._index_shard", fail)
        assert read_shards(folder)[0] == first
    write_shard(tmp_path, [("zero.txt", b"0" * 3000), *files[:1], ("one.cls", b"4")])
    os.utime(folder / "a.tar", ns=(1, 1))
    assert read_shards(folder)[0] == (first[0], 4)


def test_shards_that_differ_from_their_listing_are_refused(tmp_path: Path) -> None:
    two = [(f"{name}.{ending}", b"1") for name in "ab" for ending in ("jpg", "cls")]
    twice = [("one.jpg", b""), ("one.JPG", b""), ("one.cls", b"3")]
    refusals: list[tuple[str, list[tuple[str, bytes]], Kind, dict[str, object]]] = [
        ("no class", [("one.jpg", b"")], "bad-data", {"images": 0, "expected": 1}),
        ("a class of another", [("one.jpg", b""), ("two.cls", b"3")], "bad-data", {"images": 0, "expected": 1}),
        ("two images", two, "bad-data", {"images": 2, "expected": 1}),
        ("a file twice", twice, "bad-data", {"value": "one.JPG"}),
        *(
            (
                label,
                [("one.jpg", b""), ("one.cls", label.encode())],
                "bad-data",
                {"option": "one.cls", "value": label},
            )
            for label in ("10", "-1", "cat")
        ),
        ("a long class", [("one.jpg", b""), ("one.cls", b" " * 99 + b"3")], "bad-data", {"option": "one.cls"}),
    ]
    with grouped() as case:
        for name, files, kind, fields in refusals:
            with case(name), raises(kind, path=str(tmp_path / "a.tar"), **fields):
                read_shards(write_shard(tmp_path, files))


def test_damaged_or_compressed_shards_are_refused(tmp_path: Path) -> None:
    with grouped() as case:
        for damage in ("text", "packed", "cut"):
            folder = write_shard(tmp_path, [("one.jpg", picture()), ("one.cls", b"3")])
            content = (folder / "a.tar").read_bytes()
            damaged = {"text": b"no tar file" * 99, "packed": gzip.compress(content), "cut": content[:700]}
            (folder / "a.tar").write_bytes(damaged[damage])
            with case(damage), raises("bad-file", path=str(folder / "a.tar")):
                read_shards(folder)


def test_a_shard_rewritten_during_reading_gives_no_wrong_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [("one.jpg", picture()), ("one.cls", b"3")]
    images = read_shards(write_shard(tmp_path, files))
    os.utime(tmp_path / "a.tar", ns=(1, 1))
    with pytest.raises(OSError, match=r"512 .*a\.tar") as caught:
        images[0]
    assert type(caught.value.__cause__) is OSError
    monkeypatch.setattr("tasks.data.image_shards._label", lambda *_: os.utime(tmp_path / "a.tar", ns=(2, 2)) or 3)
    with raises("in-use", path=str(tmp_path / "a.tar")):
        read_shards(tmp_path)


def test_an_unreadable_image_is_located_by_its_byte(tmp_path: Path) -> None:
    images = read_shards(write_shard(tmp_path, [("one.jpg", b"no picture"), ("one.cls", b"3")]))
    with pytest.raises(OSError, match=r"512 .*a\.tar") as caught:
        images[0]
    assert isinstance(caught.value.__cause__, UnidentifiedImageError)


def test_faulty_listings_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"")
    listings = [
        ('{"splits": {"train": {}}}', "KeyError"),
        ("[]", "TypeError"),
        ("{", "JSONDecodeError"),
        ('{"splits": {}}', "StopIteration"),
        *(
            (f'{{"splits": {{"train": {{"filenames": {names}, "shard_lengths": {lengths}}}}}}}', "ValueError")
            for names, lengths in (
                ("[]", "[]"),
                ('["a", "b"]', "[1]"),
                ('["a"]', "[1, 1]"),
                ('["a", "a"]', "[1, 1]"),
                ('["a"]', "[0]"),
                ('["a"]', "[1.9]"),
                ('["a"]', "[Infinity]"),
                ('["a"]', "[true]"),
            )
        ),
    ]
    with grouped() as case:
        for text, cause in listings:
            (tmp_path / "_info.json").write_text(text)
            with case(text), raises("bad-file", path=str(tmp_path / "_info.json"), split="train", cause=cause):
                read_listing(tmp_path, ("train", "training"))
