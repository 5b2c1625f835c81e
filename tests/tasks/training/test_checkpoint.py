"""Checkpoints of trainings: complete, newest first, and never fatal."""

from pathlib import Path

import pytest
import torch

from expect import warns
from grouped import grouped
from tasks.training import checkpoint
from tasks.training.checkpoint import Checkpoint


def state(step: int) -> dict[str, object]:
    return {"step": step, "weights": torch.full((100,), float(step)), "curve": [(1, {"loss": 0.5})], "position": (3, 4)}


def step_of(state: object) -> int | None:
    return None if state is None else state["step"]  # type: ignore[index, no-any-return]


def test_a_state_is_read_back(tmp_path: Path) -> None:
    Checkpoint(tmp_path, "a run").save(state(7))
    content = Checkpoint(tmp_path, "a run").load()
    assert content is not None
    assert torch.equal(content["weights"], torch.full((100,), 7.0))
    assert (content["curve"], content["position"]) == ([(1, {"loss": 0.5})], (3, 4))


def test_two_checkpoints_stay_and_the_newest_is_loaded(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "a run")
    for step in range(12):
        checkpoint.save(state(step))
    assert len(list(tmp_path.iterdir())) == 2
    assert step_of(checkpoint.load()) == 11


def test_a_damaged_checkpoint_is_replaced_by_the_previous(tmp_path: Path) -> None:
    with grouped() as case:
        for bit in (0, 100, -1):
            with case(f"bit {bit}"):
                checkpoint = Checkpoint(tmp_path, "a run")
                checkpoint.save(state(1))
                checkpoint.save(state(2))
                newest = max(tmp_path.iterdir())
                content = bytearray(newest.read_bytes())
                content[bit] ^= 1
                newest.write_bytes(content)
                with warns("bad-file", path=str(newest)):
                    assert step_of(checkpoint.load()) == 1
                assert newest.with_suffix(".bad").exists()
                assert step_of(checkpoint.load()) == 1
                checkpoint.clear()
                assert not list(tmp_path.iterdir())


def test_checkpoints_of_another_run_are_not_changed(tmp_path: Path) -> None:
    checkpoint, other_checkpoint = Checkpoint(tmp_path, "a run"), Checkpoint(tmp_path, "another run")
    checkpoint.save(state(1))
    assert other_checkpoint.load() is None
    other_checkpoint.save(state(2))
    other_checkpoint.clear()
    assert step_of(checkpoint.load()) == 1


def test_a_partial_file_is_not_read_and_is_removed_at_the_end(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "a run")
    checkpoint.save(state(1))
    (path,) = tmp_path.iterdir()
    half = path.with_name(f"{path.name.split('.')[0]}.0badf00d.partial")
    half.write_bytes(b"half")
    assert step_of(checkpoint.load()) == 1
    checkpoint.clear()
    assert not list(tmp_path.iterdir())


def test_without_a_folder_nothing_is_saved() -> None:
    checkpoint = Checkpoint(None, "a run")
    checkpoint.save(state(1))
    assert checkpoint.load() is None
    assert not checkpoint.due()
    checkpoint.clear()


def test_an_unwritable_folder_gives_a_notice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with warns("unwritable", path=str(tmp_path / "file" / "below")):
        Checkpoint(tmp_path / "file" / "below", "a run").save(state(1))


def test_checkpoints_are_due_each_minute_or_more_rarely_where_they_are_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    files = Checkpoint(tmp_path, "a run")
    due = []
    for second in (59.0, 61.0):
        now[0] = second
        due.append(files.due())
    assert due == [False, True]

    def slowly(content: object, path: Path) -> None:
        now[0] += 10
        path.write_bytes(b"")

    monkeypatch.setattr(torch, "save", slowly)
    files.save(state(1))
    for second in (71.0 + 499, 71.0 + 501):
        now[0] = second
        due.append(files.due())
    assert due[2:] == [False, True]
