"""Images in shards: what webdataset writes and reads, and what is no such shard."""

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
from PIL import Image

from search_spaces.errors import UserError
from tasks.image_shards import listed, shard_source

RANDOM = np.random.default_rng(0)


def picture(kind: str = "jpeg") -> bytes:
    written = io.BytesIO()
    Image.fromarray(RANDOM.integers(0, 256, (6, 5, 3), dtype=np.uint8)).save(written, kind)
    return written.getvalue()


def list_shards(folder: Path, shards: Mapping[str, int]) -> None:
    train = {"filenames": [*shards], "shard_lengths": [*shards.values()]}
    (folder / "_info.json").write_text(json.dumps({"splits": {"training": train}}))


def written(folder: Path, files: Sequence[tuple[str, bytes]], images: int = 1) -> Path:
    """A folder of one shard with these files."""
    with tarfile.open(folder / "a.tar", "w") as tar:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    list_shards(folder, {"a.tar": images})
    return folder


def found(folder: Path) -> Any:
    return shard_source(folder, ("train", "training"), 10).images


def test_what_webdataset_writes_is_read_as_it_reads_it(tmp_path: Path) -> None:
    for name in ("a.tar", "sub/b.tar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with webdataset.TarWriter(str(tmp_path / name)) as sink:
            for number in range(5):
                more = {"json": {"filename": "x"}, "jpg": picture(), "cls": number * 2}
                sink.write({"__key__": f"n01/{number:03d}"} | more)
    list_shards(tmp_path, {"a.tar": 5, "sub/b.tar": 5})
    images = found(tmp_path)
    theirs = webdataset.WebDataset([str(tmp_path / "a.tar"), str(tmp_path / "sub/b.tar")], shardshuffle=False)
    expected = [(one["jpg"], one["cls"]) for one in theirs.decode("rgb8")]
    assert len(images) == len(expected) == 10
    for index in torch.randperm(10).tolist():  # in any order
        image, label = images[index]
        assert label == expected[index][1]
        assert np.array_equal(np.asarray(image), expected[index][0])


def test_names_orders_and_other_files_are_webdatasets(tmp_path: Path) -> None:
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
    images = found(written(tmp_path, files, 4))
    theirs = webdataset.WebDataset(str(tmp_path / "a.tar"), shardshuffle=False)
    expected = [*theirs.decode("rgb8", only=["jpg", "png", "webp", "cls"]).to_tuple("jpg;png;webp", "cls")]
    assert [images[index][1] for index in range(4)] == [label for _, label in expected] == [3, 4, 5, 6]
    for index, (pixels, _) in enumerate(expected):
        assert np.array_equal(np.asarray(images[index][0]), pixels)


def test_where_images_lie_is_looked_up_once_and_again_where_a_shard_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [("one.jpg", picture()), ("one.cls", b"3")]
    folder = written(tmp_path, files)
    first = found(folder)[0]

    def fail(*_: Any) -> None:
        raise AssertionError("looked up again")

    with monkeypatch.context() as patch:
        patch.setattr("tasks.image_shards._places", fail)
        assert found(folder)[0] == first
    written(tmp_path, [("zero.txt", b"0" * 3000), *files[:1], ("one.cls", b"4")])
    os.utime(folder / "a.tar", ns=(1, 1))
    assert found(folder)[0] == (first[0], 4)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([("one.jpg", b"")], r"must hold 1 images with classes \(.cls\), as _info.json says, got 0"),
        ([("one.jpg", b""), ("two.cls", b"3")], "got 0"),
        ([("one.jpg", b""), ("one.cls", b"10")], "must hold a class from 0 to 9, got b'10'"),
        ([("one.jpg", b""), ("one.cls", b"-1")], "must hold a class from 0 to 9"),
        ([("one.jpg", b""), ("one.cls", b"cat")], "must hold a class from 0 to 9"),
        ([("one.jpg", b""), ("one.cls", b" " * 99 + b"3")], "must hold a class from 0 to 9"),
        ([(f"{name}.{ending}", b"1") for name in "ab" for ending in ("jpg", "cls")], "got 2"),
        ([("one.jpg", b""), ("one.JPG", b""), ("one.cls", b"3")], "has each of an example's files once, and '.*a.tar'"),
    ],
)
def test_what_is_not_as_listed_is_a_line(tmp_path: Path, files: list[tuple[str, bytes]], says: str) -> None:
    with pytest.raises(UserError, match=says):
        found(written(tmp_path, files))


@pytest.mark.parametrize("damage", ["text", "packed", "cut"])
def test_a_shard_that_is_damaged_or_packed_is_a_line(tmp_path: Path, damage: str) -> None:
    folder = written(tmp_path, [("one.jpg", picture()), ("one.cls", b"3")])
    content = (folder / "a.tar").read_bytes()
    damaged = {"text": b"no tar file" * 99, "packed": gzip.compress(content), "cut": content[:700]}
    (folder / "a.tar").write_bytes(damaged[damage])
    with pytest.raises(UserError, match=r"a.tar' cannot be read as a tar file that is not packed: "):
        found(folder)


def test_a_shard_that_is_written_anew_meanwhile_gives_no_wrong_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [("one.jpg", picture()), ("one.cls", b"3")]
    images = found(written(tmp_path, files))
    os.utime(tmp_path / "a.tar", ns=(1, 1))
    with pytest.raises(OSError, match=r"byte 512 of '.*a.tar' cannot be read: the shard was written anew meanwhile"):
        images[0]
    monkeypatch.setattr("tasks.image_shards._label", lambda *_: os.utime(tmp_path / "a.tar", ns=(2, 2)) or 3)
    with pytest.raises(UserError, match=r"a.tar' was written anew while it was looked through. Begin again\."):
        found(tmp_path)


def test_an_image_that_cannot_be_read_is_named_by_its_place(tmp_path: Path) -> None:
    images = found(written(tmp_path, [("one.jpg", b"no picture"), ("one.cls", b"3")]))
    with pytest.raises(OSError, match=r"the image at byte 512 of '.*a.tar' cannot be read: "):
        images[0]


@pytest.mark.parametrize(
    "text",
    [
        *('{"splits": {"train": {}}}', "[]", "{", '{"splits": {}}'),
        *(
            f'{{"splits": {{"train": {{"filenames": {names}, "shard_lengths": {lengths}}}}}}}'
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
    ],
)
def test_a_listing_that_is_wrong_is_a_line(tmp_path: Path, text: str) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "_info.json").write_text(text)
    with pytest.raises(UserError, match=r"must list the filenames and shard_lengths of splits.train"):
        listed(tmp_path, ("train", "training"))
