"""Distributed training as started by torchrun, on CPUs."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from expect import raises
from tasks.recipes.recipe import Recipe

BESIDE = Path(__file__).with_name("shared_runs.py")
TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@cache
def run_shared(kind: str, processes: int, folder: str = "") -> list[dict[str, Any]]:
    """The printed record of each process of shared_runs.py."""
    start = [sys.executable] if processes == 1 else TWO
    done = subprocess.run([*start, str(BESIDE), kind, folder], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda record: record["rank"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sharing", "optimizer"),
    [
        *[("ddp", name) for name in ("adamw", "galore(gap=9,rank=3)", "muon", "sgd")],
        *[("fsdp", name) for name in ("adamw", "adam", "sgd", "sgd(momentum=0.9)")],
    ],
)
def test_two_processes_give_the_numbers_of_one_on_the_same_batches(sharing: str, optimizer: str) -> None:
    (alone,), together = run_shared(f"points-ddp-{optimizer}", 1), run_shared(f"points-{sharing}-{optimizer}", 2)
    for record in together:
        for name, value in alone["metrics"].items():
            assert record["metrics"][name] == pytest.approx(value, rel=1e-5)
        assert record["curve"] == pytest.approx(alone["curve"], rel=1e-5)
    assert together[0]["metrics"] == together[1]["metrics"]


@pytest.mark.slow
def test_each_process_loads_its_own_share_of_every_batch() -> None:
    (alone,), together = run_shared("points-ddp", 1), run_shared("points-ddp", 2)
    assert alone["read"] == 40 * 16
    assert [record["read"] for record in together] == [40 * 8, 40 * 8]
    shares = [set(record["measured"]) for record in together]
    assert not shares[0] & shares[1]
    assert shares[0] | shares[1] == set(alone["measured"])


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["ddp", "fsdp"])
def test_each_process_tokenizes_its_documents_and_has_the_metrics_of_all(sharing: str) -> None:
    (alone,), together = run_shared("stories-ddp", 1), run_shared(f"stories-{sharing}", 2)
    for part in ("trained", "measured"):
        shares = [set(record[part]) for record in together]
        assert not shares[0] & shares[1]
        assert shares[0] | shares[1] == set(alone[part])
    assert together[0]["metrics"] == together[1]["metrics"]
    assert together[0]["test"] == together[1]["test"]
    # Two processes train on other rows than one; equal weights have equal scores.
    assert together[0]["start"] == pytest.approx(alone["start"], rel=1e-6)
    assert together[0]["metrics"]["loss"] == pytest.approx(alone["metrics"]["loss"], rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "report"),
    [
        ("points-ddp", 3),
        ("points-ddp-muon", 3),
        ("points-fsdp", 1),
        ("points-fsdp-sgd", 2),
        ("points-fsdp-sgd(momentum=0.9)", 2),
        ("stories-fsdp", 2),
    ],
)
def test_resume_of_a_shared_training_gives_the_same_numbers(kind: str, report: int, tmp_path: Path) -> None:
    whole = run_shared(kind, 2)
    (tmp_path / "stop").write_text(str(report))
    records = run_shared(kind, 2, str(tmp_path))
    assert all(record["steps"] < whole[0]["steps"] for record in records)
    (tmp_path / "stop").unlink()
    records_after = run_shared.__wrapped__(kind, 2, str(tmp_path))
    for record, expected in zip(records_after, whole, strict=True):
        assert record["metrics"] == pytest.approx(expected["metrics"], rel=1e-6)
        assert record["curve"] == pytest.approx(expected["curve"], rel=1e-6)
        assert record["steps"] == expected["steps"]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_processes_with_different_clocks_stop_together(tmp_path: Path) -> None:
    first, second = run_shared("hours-ddp", 2)
    assert first["steps"] == second["steps"] > 40
    assert first["metrics"] == second["metrics"]
    assert first["curve"] == second["curve"]
    assert len(first["curve"]) == 5  # before the first step and after each fifth of the hour except the last
    assert first["read"] == second["read"]
    (tmp_path / "stop").write_text("3")
    assert all(record["steps"] < first["steps"] for record in run_shared("hours-ddp", 2, str(tmp_path)))
    (tmp_path / "stop").unlink()
    records_after = run_shared.__wrapped__("hours-ddp", 2, str(tmp_path))
    assert records_after[0]["steps"] == records_after[1]["steps"] == pytest.approx(first["steps"], abs=20)
    assert [record["curve"][:3] for record in records_after] == [pytest.approx(first["curve"][:3])] * 2


def test_devices_share_the_batch_and_keep_the_micro_batch() -> None:
    recipe = Recipe(steps=1, batch=512, lr=1.0, accumulate=8)
    assert [recipe.for_devices(devices).accumulate for devices in (1, 2, 8, 16)] == [8, 4, 1, 1]


def test_refuses_a_batch_that_cannot_be_shared_evenly() -> None:
    with raises("mismatch", option="batch", value=512, devices=3):
        Recipe(steps=1, batch=512, lr=1.0).for_devices(3)
