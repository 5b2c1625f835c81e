"""Checkpoints: whole, the newest good one, and never in the way."""

from pathlib import Path

import pytest
import torch

from tasks import checkpoint
from tasks.checkpoint import Checkpoint


def state(step: int) -> dict[str, object]:
    return {"step": step, "weights": torch.full((100,), float(step)), "curve": [(1, {"loss": 0.5})], "position": (3, 4)}


def step_of(found: object) -> int | None:
    return None if found is None else found["step"]  # type: ignore[index, no-any-return]


def test_a_state_is_read_as_it_was(tmp_path: Path) -> None:
    Checkpoint(tmp_path, "a run").save(state(7))
    found = Checkpoint(tmp_path, "a run").load()
    assert found is not None
    assert torch.equal(found["weights"], torch.full((100,), 7.0))
    assert (found["curve"], found["position"]) == ([(1, {"loss": 0.5})], (3, 4))


def test_two_are_kept_and_the_newest_is_taken(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path, "a run")
    for step in range(12):
        kept.save(state(step))
    assert len(list(tmp_path.iterdir())) == 2
    assert step_of(kept.load()) == 11


@pytest.mark.parametrize("bit", [0, 100, -1])
def test_where_a_bit_is_another_the_one_before_is_taken(tmp_path: Path, bit: int) -> None:
    kept = Checkpoint(tmp_path, "a run")
    kept.save(state(1))
    kept.save(state(2))
    newest = max(tmp_path.iterdir())
    content = bytearray(newest.read_bytes())
    content[bit] ^= 1
    newest.write_bytes(content)
    with pytest.warns(UserWarning, match="its bytes are not those that were written"):
        assert step_of(kept.load()) == 1
    assert newest.with_suffix(".bad").exists()
    assert step_of(kept.load()) == 1
    kept.clear()
    assert not list(tmp_path.iterdir())


def test_those_of_another_run_are_left_alone(tmp_path: Path) -> None:
    one, other = Checkpoint(tmp_path, "a run"), Checkpoint(tmp_path, "another run")
    one.save(state(1))
    assert other.load() is None
    other.save(state(2))
    other.clear()
    assert step_of(one.load()) == 1


def test_what_was_half_written_when_the_machine_stopped_is_not_read_and_goes_at_the_end(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path, "a run")
    kept.save(state(1))
    (path,) = tmp_path.iterdir()
    half = path.with_name(f"{path.name.split('.')[0]}.0badf00d.partial")
    half.write_bytes(b"half")
    assert step_of(kept.load()) == 1
    kept.clear()
    assert not list(tmp_path.iterdir())


def test_without_a_folder_nothing_is_kept() -> None:
    kept = Checkpoint(None, "a run")
    kept.save(state(1))
    assert kept.load() is None
    assert not kept.due()
    kept.clear()


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.warns(UserWarning, match="no checkpoint could be kept"):
        Checkpoint(tmp_path / "file" / "below", "a run").save(state(1))


def test_it_is_due_after_a_while_and_takes_a_small_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    kept = Checkpoint(tmp_path, "a run")
    seen = []
    for second in (59.0, 61.0):
        now[0] = second
        seen.append(kept.due())
    assert seen == [False, True]

    def slowly(content: object, path: Path) -> None:
        now[0] += 10
        path.write_bytes(b"")

    monkeypatch.setattr(torch, "save", slowly)
    kept.save(state(1))
    for second in (71.0 + 499, 71.0 + 501):
        now[0] = second
        seen.append(kept.due())
    assert seen[2:] == [False, True]
