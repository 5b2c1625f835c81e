"""Several processes that train one network, as torchrun starts them; on CPUs here, on GPUs elsewhere."""

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
def trained(what: str, processes: int, folder: str = "") -> list[dict[str, Any]]:
    """What each process of a training in shared_runs.py prints."""
    start = [sys.executable] if processes == 1 else TWO
    done = subprocess.run([*start, str(BESIDE), what, folder], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda told: told["rank"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sharing", "optimizer"),
    [
        *[("ddp", name) for name in ("adamw", "galore(gap=9,rank=3)", "muon", "sgd")],
        *[("fsdp", name) for name in ("adamw", "adam", "sgd", "sgd(momentum=0.9)")],
    ],
)
def test_two_processes_give_the_numbers_of_one_on_the_same_batches(sharing: str, optimizer: str) -> None:
    (alone,), together = trained(f"points-ddp-{optimizer}", 1), trained(f"points-{sharing}-{optimizer}", 2)
    for told in together:
        for name, value in alone["metrics"].items():
            assert told["metrics"][name] == pytest.approx(value, rel=1e-5)
        assert told["curve"] == pytest.approx(alone["curve"], rel=1e-5)
    assert together[0]["metrics"] == together[1]["metrics"]


@pytest.mark.slow
def test_each_process_loads_its_own_share_of_every_batch() -> None:
    (alone,), together = trained("points-ddp", 1), trained("points-ddp", 2)
    assert alone["read"] == 40 * 16
    assert [told["read"] for told in together] == [40 * 8, 40 * 8]
    shares = [set(told["measured"]) for told in together]
    assert not shares[0] & shares[1]
    assert shares[0] | shares[1] == set(alone["measured"])


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["ddp", "fsdp"])
def test_each_process_tokenises_its_documents_and_has_the_metrics_of_all(sharing: str) -> None:
    (alone,), together = trained("stories-ddp", 1), trained(f"stories-{sharing}", 2)
    for part in ("trained", "measured"):
        shares = [set(told[part]) for told in together]
        assert not shares[0] & shares[1]
        assert shares[0] | shares[1] == set(alone[part])
    assert together[0]["metrics"] == together[1]["metrics"]
    assert together[0]["test"] == together[1]["test"]
    # They train on other rows than one process does; what weights score that are equal is equal.
    assert together[0]["start"] == pytest.approx(alone["start"], rel=1e-6)
    assert together[0]["metrics"]["loss"] == pytest.approx(alone["metrics"]["loss"], rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "report"),
    [
        ("points-ddp", 3),
        ("points-ddp-muon", 3),
        ("points-fsdp", 1),
        ("points-fsdp-sgd", 2),
        ("points-fsdp-sgd(momentum=0.9)", 2),
        ("stories-fsdp", 2),
    ],
)
def test_resume_of_a_shared_training_gives_the_same_numbers(what: str, report: int, tmp_path: Path) -> None:
    whole = trained(what, 2)
    (tmp_path / "stop").write_text(str(report))
    stopped = trained(what, 2, str(tmp_path))
    assert all(told["steps"] < whole[0]["steps"] for told in stopped)
    (tmp_path / "stop").unlink()
    resumed = trained.__wrapped__(what, 2, str(tmp_path))
    for told, expected in zip(resumed, whole, strict=True):
        assert told["metrics"] == pytest.approx(expected["metrics"], rel=1e-6)
        assert told["curve"] == pytest.approx(expected["curve"], rel=1e-6)
        assert told["steps"] == expected["steps"]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_processes_with_different_clocks_stop_together(tmp_path: Path) -> None:
    first, second = trained("hours-ddp", 2)
    assert first["steps"] == second["steps"] > 40
    assert first["metrics"] == second["metrics"]
    assert first["curve"] == second["curve"]
    assert len(first["curve"]) == 5  # before the first step, and after each fifth of the hour but the last
    assert first["read"] == second["read"]
    (tmp_path / "stop").write_text("3")
    assert all(told["steps"] < first["steps"] for told in trained("hours-ddp", 2, str(tmp_path)))
    (tmp_path / "stop").unlink()
    resumed = trained.__wrapped__("hours-ddp", 2, str(tmp_path))
    assert resumed[0]["steps"] == resumed[1]["steps"] == pytest.approx(first["steps"], abs=20)
    assert [told["curve"][:3] for told in resumed] == [pytest.approx(first["curve"][:3])] * 2


def test_devices_share_the_batch_and_keep_the_micro_batch() -> None:
    recipe = Recipe(steps=1, batch=512, lr=1.0, accumulate=8)
    assert [recipe.for_devices(devices).accumulate for devices in (1, 2, 8, 16)] == [8, 4, 1, 1]


def test_refuses_a_batch_that_cannot_be_shared_evenly() -> None:
    with raises("mismatch", option="batch", value=512, devices=3):
        Recipe(steps=1, batch=512, lr=1.0).for_devices(3)
