"""A full disk gives notices and loses no finished evaluation. The disk is a small file system in memory."""

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
    """A file system of 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True, text=True)
    if mount.returncode:
        pytest.skip(f"nothing can be mounted here: {mount.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def fill(disk: Path) -> Fill:
    """Fill the disk up to so many free bytes."""

    def run(room: int = 0) -> None:
        (disk / "filling").unlink(missing_ok=True)
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        with (disk / "filling").open("wb") as file:
            file.write(bytes(max(0, free - room)))

    return run


def test_checkpoint_that_does_not_fit_gives_a_notice_and_leaves_nothing(disk: Path, fill: Fill) -> None:
    checkpoint = Checkpoint(disk, "a run")
    checkpoint.save({"step": 1})
    fill(10_000)
    with warns("unwritable", path=str(disk)):
        checkpoint.save({"step": 2, "weights": torch.zeros(10_000)})
    assert checkpoint.load() == {"step": 1}
    assert not list(disk.glob("*.partial"))


def test_weights_that_do_not_fit_raise_and_leave_nothing(disk: Path, fill: Fill) -> None:
    fill(10_000)
    record = Record(task="any", task_version=1, architecture=LITTLE, step=1)
    with pytest.raises(OSError) as error:  # noqa: PT011  # the number is asserted
        save_checkpoint(disk / "network", {"weight": torch.zeros(10_000)}, record)
    assert error.value.errno == errno.ENOSPC
    assert not list((disk / "network").iterdir())


def test_evaluation_is_complete_if_its_disk_is_full(disk: Path, fill: Fill) -> None:
    job = EvaluationJob(task=f"{TOYS}:Showing", architecture=LITTLE, preset="smoke")
    expected = evaluate(job)
    fill()
    folders = {"folder": str(disk / "unfinished"), "network_folder": str(disk / "network"), "save": str(disk / "saved")}
    with warns("unwritable", path=str(disk / "unfinished" / "row.json")) as notices:
        row = evaluate(replace(job, **folders))
    assert (row.status, row.error) == ("complete", None)
    assert (row.metrics, row.test) == (expected.metrics, expected.test)
    text = " ".join(map(str, notices))
    assert all(name in text for name in ("row.json", "network", "saved"))


def test_evaluation_is_complete_if_its_network_cannot_be_copied(disk: Path, fill: Fill, tmp_path: Path) -> None:
    job = EvaluationJob(
        task=f"{TOYS}:Showing",
        architecture=LITTLE,
        preset="smoke",
        folder=str(tmp_path / "unfinished"),
        network_folder=str(tmp_path / "network"),
    )
    earlier = evaluate(job)
    fill()
    with warns("failed", option="--save"):
        row = evaluate(replace(job, earlier_row=earlier, save=str(disk / "saved")))
    assert row.status == "complete"


def test_profile_is_complete_if_its_trace_does_not_fit(disk: Path, fill: Fill) -> None:
    fill()
    task = reload_task(f"{TOYS}:Toy", None)
    profiles = profile(task, LITTLE, task.presets["smoke"], None, disk / "trace", 1)
    assert profiles["step_ms"] > 0
    without = profile(task, LITTLE, task.presets["smoke"], None, None, 1)
    assert str(profiles["profile_note"]).count(";") == str(without["profile_note"]).count(";") + 1
    assert "trace" not in profiles


def test_data_is_read_if_its_cache_cannot_be_written(disk: Path, fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(disk / "cache"))
    fill()
    with warns("unwritable", path=str(disk / "cache" / "a.lists")):
        arrays = cache_arrays("a.lists", lambda: {"ids": np.arange(50_000)})
    assert arrays["ids"].sum() == sum(range(50_000))


@pytest.mark.parametrize(
    "room", [pytest.param(0, marks=pytest.mark.slow), 60_000, pytest.param(200_000, marks=pytest.mark.slow)]
)
def test_search_resumes_after_its_store_was_full(tmp_path: Path, disk: Path, fill: Fill, room: int) -> None:
    arguments = {**a_search(tmp_path), "trials": 14}
    whole = outcomes(nas.search(**arguments))
    arguments["storage"] = f"sqlite:///{disk}/studies.db"
    before = outcomes(nas.search(**{**arguments, "trials": 2}))
    fill(room)
    with raises("unavailable", storage=str(disk / "studies.db")) as error:
        nas.search(**arguments)
    assert re.search("full|disk", str(error.value))
    (disk / "filling").unlink()
    rows_after = outcomes(nas.load("s", storage=arguments["storage"]))
    assert rows_after[: len(before)] == before
    assert outcomes(nas.search(**arguments)) == whole


@pytest.mark.slow
def test_full_disk_leaves_existing_tables_unchanged(tmp_path: Path, disk: Path, fill: Fill) -> None:
    arguments = a_search(tmp_path)
    nas.search(**arguments)
    for form in ("jsonl", "csv", "json", "parquet"):
        (disk / f"rows.{form}").write_text("as it was")
    fill()
    for form in ("jsonl", "csv", "json", "parquet"):
        words = ["results", "--storage", arguments["storage"], "--format", form, "--output", str(disk / f"rows.{form}")]
        done = subprocess.run([sys.executable, "-m", "nas", *words], capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert os.strerror(errno.ENOSPC) in done.stderr
        assert f"rows.{form}" in done.stderr
        assert (disk / f"rows.{form}").read_text() == "as it was"
