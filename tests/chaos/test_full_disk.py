"""A full disk costs what would have been written, with a notice, and no finished evaluation.

The disk is a file system of a few megabytes, in memory.
"""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import nas
from expect import raises, warns
from nas.costs.profile.profile import profile
from nas.evaluation.evaluate import evaluate
from nas.request.job import EvaluationJob, reload_task
from search_spaces.architecture.checkpoint import Record, save_checkpoint
from search_spaces.support.cache import cache_arrays
from tasks.training.checkpoint import Checkpoint
from toy_rows import LITTLE
from toy_searches import TOYS, a_search, outcomes

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


def test_checkpoint_that_does_not_fit_gives_a_notice_and_leaves_nothing(disk: Path, fill: Fill) -> None:
    kept = Checkpoint(disk, "a run")
    kept.save({"step": 1})
    fill(10_000)
    with warns("unwritable", path=str(disk)):
        kept.save({"step": 2, "weights": torch.zeros(10_000)})
    assert kept.load() == {"step": 1}
    assert not list(disk.glob("*.partial"))


def test_weights_that_do_not_fit_raise_and_leave_nothing(disk: Path, fill: Fill) -> None:
    fill(10_000)
    record = Record(task="any", task_version=1, architecture=LITTLE, step=1)
    with pytest.raises(OSError) as told:  # noqa: PT011  # the number is asserted
        save_checkpoint(disk / "network", {"weight": torch.zeros(10_000)}, record)
    assert told.value.errno == errno.ENOSPC
    assert not list((disk / "network").iterdir())


def test_evaluation_with_full_folders_is_complete(disk: Path, fill: Fill) -> None:
    job = EvaluationJob(task=f"{TOYS}:Showing", architecture=LITTLE, preset="smoke")
    expected = evaluate(job)
    fill()
    folders = {"folder": str(disk / "unfinished"), "network": str(disk / "network"), "save": str(disk / "saved")}
    with warns("unwritable", path=str(disk / "unfinished" / "row.json")) as told:
        row = evaluate(replace(job, **folders))
    assert (row.status, row.error) == ("complete", None)
    assert (row.metrics, row.test) == (expected.metrics, expected.test)
    text = " ".join(map(str, told))
    assert all(name in text for name in ("row.json", "network", "saved"))


def test_evaluation_is_complete_if_its_network_cannot_be_copied(disk: Path, fill: Fill, tmp_path: Path) -> None:
    job = EvaluationJob(
        task=f"{TOYS}:Showing",
        architecture=LITTLE,
        preset="smoke",
        folder=str(tmp_path / "unfinished"),
        network=str(tmp_path / "network"),
    )
    known = evaluate(job)
    fill()
    with warns("failed", option="--save"):
        row = evaluate(replace(job, earlier_row=known, save=str(disk / "saved")))
    assert row.status == "complete"


def test_profile_is_complete_if_its_trace_does_not_fit(disk: Path, fill: Fill) -> None:
    fill()
    task = reload_task(f"{TOYS}:Toy", None)
    found = profile(task, LITTLE, task.presets["smoke"], None, disk / "trace", 1)
    assert found["step_ms"] > 0
    without = profile(task, LITTLE, task.presets["smoke"], None, None, 1)
    assert str(found["profile_note"]).count(";") == str(without["profile_note"]).count(";") + 1
    assert "trace" not in found


def test_data_is_read_without_a_cache_if_that_is_full(disk: Path, fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(disk / "cache"))
    fill()
    with warns("unwritable", path=str(disk / "cache" / "a.lists")):
        arrays = cache_arrays("a.lists", lambda: {"ids": np.arange(50_000)})
    assert arrays["ids"].sum() == sum(range(50_000))


@pytest.mark.parametrize(
    "left", [pytest.param(0, marks=pytest.mark.slow), 60_000, pytest.param(200_000, marks=pytest.mark.slow)]
)
def test_search_resumes_after_its_store_was_full(tmp_path: Path, disk: Path, fill: Fill, left: int) -> None:
    asked = {**a_search(tmp_path), "trials": 14}
    whole = outcomes(nas.search(**asked))
    asked["storage"] = f"sqlite:///{disk}/studies.db"
    before = outcomes(nas.search(**{**asked, "trials": 2}))
    fill(left)
    with raises("unavailable", storage=str(disk / "studies.db")) as error:
        nas.search(**asked)
    assert re.search("full|disk", str(error.value))
    (disk / "filling").unlink()
    stored = outcomes(nas.load("s", storage=asked["storage"]))
    assert stored[: len(before)] == before
    assert outcomes(nas.search(**asked)) == whole


@pytest.mark.slow
def test_tables_that_do_not_fit_leave_the_old_ones(tmp_path: Path, disk: Path, fill: Fill) -> None:
    asked = a_search(tmp_path)
    nas.search(**asked)
    for form in ("jsonl", "csv", "json", "parquet"):
        (disk / f"rows.{form}").write_text("as it was")
    fill()
    for form in ("jsonl", "csv", "json", "parquet"):
        words = ["results", "--storage", asked["storage"], "--format", form, "--output", str(disk / f"rows.{form}")]
        done = subprocess.run([sys.executable, "-m", "nas", *words], capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert os.strerror(errno.ENOSPC) in done.stderr
        assert f"rows.{form}" in done.stderr
        assert (disk / f"rows.{form}").read_text() == "as it was"
