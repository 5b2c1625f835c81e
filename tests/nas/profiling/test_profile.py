"""Profiles: what is measured, what is left out and why, and networks that do not keep a limit."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nas.evaluate import Job, evaluate
from nas.profiling import profile as profiling
from nas.profiling import timing
from nas.profiling.profile import profile, profile_what_fits
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from tasks.digits import DigitsViT

TINY = Architecture(depth=1, width=8, heads=1, head_dim=8, hidden=8)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM_UP_S", 0.0)
    monkeypatch.setattr(timing, "MEASURED_S", 0.0)


def test_a_profile_holds_times_memory_and_the_trace(tmp_path: Path) -> None:
    found = profile(DigitsViT(), TINY, "smoke", None, tmp_path / "a.b")
    assert found["batch"] == DigitsViT.presets["smoke"].batch
    for name in ("latency_ms", "step_ms"):
        assert 0 < found[f"{name}_q1"] <= found[name] <= found[f"{name}_q3"]  # type: ignore[operator]  # numbers
    assert found["examples_per_s"] == pytest.approx(1e3 * found["batch"] / found["step_ms"])  # type: ignore[operator]
    assert Path(str(found["trace"])).is_file()
    assert "time_cpu" in found


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_what_is_not_measured_is_left_out_with_its_reason() -> None:
    found = profile(DigitsViT(), TINY, "smoke", 2, None)
    assert "energy_j" not in found
    assert "energy is measured on NVIDIA GPUs" in str(found["profile_note"])
    assert "trace" not in found


def without_memory_for(examples: int) -> Callable[..., object]:
    measured = profiling._measured

    def fail(*given: object) -> object:
        if given[3] >= examples:  # type: ignore[operator]  # the batch
            raise torch.OutOfMemoryError("no memory")
        return measured(*given)  # type: ignore[arg-type]  # passed on

    return fail


def test_where_memory_runs_out_the_batch_is_halved_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_measured", without_memory_for(3))
    found = profile_what_fits(DigitsViT(), TINY, "smoke", 8, None)
    assert found["batch"] == 2
    assert "batch 2 instead of 8 for lack of memory" in str(found["profile_note"])


def job(**changes: object) -> Job:
    return Job(**{"task": "digits-vit", "architecture": TINY, "preset": "smoke", "seed": 0, **changes})  # type: ignore[arg-type]


def test_a_network_over_a_limit_is_not_trained() -> None:
    row = evaluate(job(limits="latency_ms<=0.0001"))
    assert row.status == "over-budget"
    assert row.steps == 0
    assert row.profile["latency_ms"] > 0.0001  # type: ignore[operator]  # a number
    assert "is not within latency_ms<=0.0001" in str(row.error)


def test_a_network_within_a_limit_is_trained_and_keeps_its_profile() -> None:
    row = evaluate(job(limits="latency_ms<=10000"))
    assert row.status == "complete"
    assert row.columns()["latency_ms"] == row.profile["latency_ms"]


def test_no_memory_for_the_presets_batch_is_over_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_measured", without_memory_for(DigitsViT.presets["smoke"].batch))
    row = evaluate(job(profiled=True))
    assert row.status == "over-budget"
    assert "no memory for a step" in str(row.error)


def test_no_memory_for_one_example_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_measured", without_memory_for(1))
    with pytest.raises(UserError, match="one example"):
        profile_what_fits(DigitsViT(), TINY, "smoke", 4, None)


def test_a_folder_of_traces_that_cannot_be_made_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be made"):
        profile(DigitsViT(), TINY, "smoke", 2, tmp_path / "file" / "trace")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_limit_on_what_cannot_be_measured_fails_the_evaluation() -> None:
    row = evaluate(job(limits="energy_j<=1"))
    assert row.status == "failed"
    assert "energy_j is bounded and was not measured" in str(row.error)
