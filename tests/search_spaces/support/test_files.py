"""Checked files: every flipped bit and missing byte is detected or harmless."""

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from expect import warns
from nas.evaluation.evaluate import evaluate
from nas.request.job import EvaluationJob
from search_spaces.architecture.checkpoint import RECORD, WEIGHTS, Record, read_record, read_weights, save_checkpoint
from search_spaces.support.cache import cache_arrays, cache_bytes
from search_spaces.support.errors import UserError
from search_spaces.support.files import atomic_open, kind_of_read_error, read_checked, write_checked
from tasks.training.checkpoint import Checkpoint
from toy_rows import LITTLE
from toy_searches import TOYS

EXAMPLE = Record(task="any", task_version=3, architecture=LITTLE, step=12, settings={"preset": "smoke"})


def damaged(content: bytes, bits: int = 60, cuts: int = 20) -> Iterator[bytes]:
    """Copies of a file with one flipped bit each, or truncated."""
    draw = random.Random(0)
    for bit in {0, 8 * len(content) - 1, *(draw.randrange(8 * len(content)) for _ in range(bits))}:
        copy = bytearray(content)
        copy[bit // 8] ^= 1 << bit % 8
        yield bytes(copy)
    for size in {0, 1, len(content) - 1, *(draw.randrange(len(content)) for _ in range(cuts))}:
        yield content[:size]


def test_a_checked_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    assert read_checked(path) is None
    write_checked(path, b"some bytes\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_checked(path) == b"some bytes\n"


def test_a_damaged_file_is_quarantined_with_a_notice(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_checked(path, b"some bytes that are kept")
    for content in damaged(path.read_bytes()):
        path.write_bytes(content)
        with warns("bad-file", path=str(path)) as notices:
            assert read_checked(path) is None
        assert len(notices) == 1
        assert (path.exists(), path.with_suffix(".bad").read_bytes()) == (False, content)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cache_bytes("a.texts", lambda: b'{"a": "some text"}').decode(),
        lambda: cache_arrays("b.lists", lambda: {"ids": np.arange(9)})["ids"].tolist(),
    ],
    ids=("bytes", "arrays"),
)
def test_a_damaged_cache_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], object]
) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path))
    whole = make()
    (path,) = (path for path in tmp_path.iterdir() if path.suffix != ".lock")
    for content in damaged(path.read_bytes()):
        path.write_bytes(content)
        with warns("bad-file", path=str(path)):
            assert make() == whole


def test_a_damaged_training_checkpoint_is_replaced_by_the_previous(tmp_path: Path) -> None:
    training = Checkpoint(tmp_path, "a run")
    for step in (1, 2):
        training.save({"step": step, "weights": torch.full((30,), float(step))})
    newest = max(tmp_path.iterdir())
    for content in damaged(newest.read_bytes()):
        newest.write_bytes(content)
        with warns("bad-file", path=str(newest)):
            state = training.load()
        assert state is not None
        assert (state["step"], state["weights"].tolist()) == (1, [1.0] * 30)


def test_a_damaged_row_is_evaluated_again(tmp_path: Path) -> None:
    job = EvaluationJob(task=f"{TOYS}:Toy", architecture=LITTLE, preset="smoke", folder=str(tmp_path))
    whole = evaluate(job)
    path = tmp_path / "row.json"
    for content in damaged(path.read_bytes(), bits=6, cuts=2):
        path.write_bytes(content)
        with warns("bad-file", path=str(path)):
            row = evaluate(job)
        assert replace(row, provenance={}) == replace(whole, provenance={})


@pytest.mark.parametrize("name", [WEIGHTS, RECORD])
def test_a_damaged_network_checkpoint_is_refused(tmp_path: Path, name: str) -> None:
    save_checkpoint(tmp_path, {"weight": torch.arange(30.0)}, EXAMPLE)
    whole = (tmp_path / name).read_bytes()
    for content in damaged(whole):
        (tmp_path / name).write_bytes(content)
        try:
            weights, record = read_weights(tmp_path), read_record(tmp_path)
        except UserError:
            continue
        # Flips between kinds of white space in JSON change nothing.
        assert record == EXAMPLE
        assert torch.equal(weights["weight"], torch.arange(30.0))
        assert len(content) == len(whole)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("as it was")

    def fails() -> None:
        with atomic_open(path) as file:
            file.write(b"half of wh")
            raise OSError("the disk is full")

    with pytest.raises(OSError):  # noqa: PT011  # the one that is raised above
        fails()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["as it was"]
    with atomic_open(path) as file:
        file.write(b"new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def test_a_file_that_cannot_be_read_is_missing_too_large_or_bad() -> None:
    large = UserError("too-large", "it is too large.", path="x", size=3)
    kinds = [*map(kind_of_read_error, (FileNotFoundError(), NotADirectoryError(), large, OSError(), ValueError()))]
    assert kinds == ["missing-file", "missing-file", "too-large", "bad-file", "bad-file"]
