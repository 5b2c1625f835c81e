"""A disk that is full costs what would have been kept on it, said in a line, and no finished evaluation.

It is tried on a file system of a few megabytes, in memory.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import nas
from nas.evaluation import evaluate
from nas.jobs import EvaluationJob, fresh_task
from nas.profiling.profile import profile
from search_spaces.checkpoint import Record, save_checkpoint
from search_spaces.errors import UserError
from tasks.cache import cached_arrays
from tasks.checkpoint import Checkpoint
from toy_rows import LITTLE
from toy_searches import TOYS, a_search, found

Fill = Callable[[int], None]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def fill(disk: Path) -> Fill:
    """Fill the disk up, so that so many bytes are left."""

    def run(left: int = 0) -> None:
        (disk / "filling").unlink(missing_ok=True)
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        with (disk / "filling").open("wb") as file:
            file.write(bytes(max(0, free - left)))

    return run


def test_a_checkpoint_that_cannot_be_kept_is_told_and_leaves_nothing(disk: Path, fill: Fill) -> None:
    kept = Checkpoint(disk, "a run")
    kept.save({"step": 1})
    fill(10_000)
    with pytest.warns(UserWarning, match=r"no checkpoint could be kept in .*The training goes on without"):
        kept.save({"step": 2, "weights": torch.zeros(10_000)})
    assert kept.load() == {"step": 1}
    assert not list(disk.glob("*.partial"))


def test_weights_that_cannot_be_kept_are_an_oserror_and_leave_nothing(disk: Path, fill: Fill) -> None:
    fill(10_000)
    record = Record(task="any", task_version=1, architecture=LITTLE, step=1)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(disk / "network", {"weight": torch.zeros(10_000)}, record)
    assert not list((disk / "network").iterdir())


def test_an_evaluation_whose_every_folder_is_full_is_complete(disk: Path, fill: Fill) -> None:
    job = EvaluationJob(task=f"{TOYS}:Showing", architecture=LITTLE, preset="smoke")
    expected = evaluate(job)
    fill()
    folders = {"folder": str(disk / "unfinished"), "network": str(disk / "network"), "save": str(disk / "saved")}
    with pytest.warns(UserWarning, match="could not be kept") as told:
        row = evaluate(replace(job, **folders))
    assert (row.status, row.error) == ("complete", None)
    assert (row.metrics, row.test) == (expected.metrics, expected.test)
    text = " ".join(str(one.message) for one in told)
    assert all(name in text for name in ("row.json", "network", "saved"))


def test_a_kept_network_that_cannot_be_copied_costs_no_evaluation(disk: Path, fill: Fill, tmp_path: Path) -> None:
    job = EvaluationJob(
        task=f"{TOYS}:Showing",
        architecture=LITTLE,
        preset="smoke",
        folder=str(tmp_path / "unfinished"),
        network=str(tmp_path / "network"),
    )
    known = evaluate(job)
    fill()
    with pytest.warns(UserWarning, match="could not be kept in"):
        row = evaluate(replace(job, known=known, save=str(disk / "saved")))
    assert row.status == "complete"


def test_a_trace_that_cannot_be_kept_costs_the_trace(disk: Path, fill: Fill) -> None:
    fill()
    task = fresh_task(f"{TOYS}:Toy", None)
    found = profile(task, LITTLE, task.presets["smoke"], None, disk / "trace", 1)
    assert found["step_ms"] > 0
    assert "no trace could be kept" in str(found["profile_note"])
    assert "trace" not in found


def test_a_cache_that_is_full_costs_time(disk: Path, fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(disk / "cache"))
    fill()
    with pytest.warns(UserWarning, match="could not be kept"):
        arrays = cached_arrays("a.lists", lambda: {"ids": np.arange(50_000)})
    assert arrays["ids"].sum() == sum(range(50_000))


@pytest.mark.parametrize("left", [0, 60_000, 200_000])
def test_a_store_that_fills_up_loses_nothing_and_the_same_command_goes_on(
    tmp_path: Path, disk: Path, fill: Fill, left: int
) -> None:
    asked = {**a_search(tmp_path), "trials": 14}
    whole = found(nas.search(**asked))
    asked["storage"] = f"sqlite:///{disk}/studies.db"
    before = found(nas.search(**{**asked, "trials": 2}))
    fill(left)
    with pytest.raises(UserError, match=r"studies\.db cannot be used: .*(full|disk).*What it holds is kept"):
        nas.search(**asked)
    (disk / "filling").unlink()
    kept = found(nas.load("s", storage=asked["storage"]))
    assert kept[: len(before)] == before
    assert found(nas.search(**asked)) == whole


def test_rows_and_tables_that_do_not_fit_leave_what_was_there(tmp_path: Path, disk: Path, fill: Fill) -> None:
    asked = a_search(tmp_path)
    nas.search(**asked)
    for form in ("jsonl", "csv", "json", "parquet"):
        (disk / f"rows.{form}").write_text("as it was")
    fill()
    for form in ("jsonl", "csv", "json", "parquet"):
        words = ["results", "--storage", asked["storage"], "--format", form, "--output", str(disk / f"rows.{form}")]
        done = subprocess.run([sys.executable, "-m", "nas", *words], capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "cannot be written: No space left on device" in done.stderr
        assert (disk / f"rows.{form}").read_text() == "as it was"
