"""Profiles: what is measured, what is left out and why, and networks that do not keep a limit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from nas.evaluation import evaluate
from nas.jobs import EvaluationJob
from nas.profiling import energy, timing
from nas.profiling import profile as profiling
from nas.profiling.profile import profile, profile_what_fits
from nas.profiling.steps import generic_step, inference, with_batch
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from tasks.base import Task
from tasks.batches import Inputs
from tasks.digits import DigitsViT
from tasks.goal_rl.catalog import GoalPointMaze
from tasks.recipe import Recipe
from tasks.run import Run
from toy_tasks import Toy, ToyRecipe

TINY = Architecture(depth=1, width=8, heads=1, head_dim=8, hidden=8)
SMOKE = DigitsViT.presets["smoke"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecipe:
    """What a step of Own is made of."""

    batch: int = 48
    accumulate: int = 3


class Own(Toy):
    """Has a training step of its own, which notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []
        self.steps = self.prepared = 0
        self.threads: set[int] = set()

    def prepare(self) -> None:
        self.prepared += 1

    def training_step(self, run: Run) -> Callable[[], None]:
        self.runs.append(run)
        weights = torch.ones(run.recipe.batch // run.recipe.accumulate, 2**18, device=run.device)  # a MiB an example

        def step() -> None:
            self.steps += 1
            self.threads.add(torch.get_num_threads())
            weights.mul_(0.5)

        return step


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM_UP_S", 0.0)
    monkeypatch.setattr(timing, "MEASURED_S", 0.0)
    monkeypatch.setattr(energy, "WINDOW_S", 0.0)


def test_a_profile_holds_times_memory_and_the_trace(tmp_path: Path) -> None:
    found = profile(DigitsViT(), TINY, SMOKE, None, tmp_path / "a.b")
    assert found["batch"] == SMOKE.batch
    assert found["threads"] == 1
    assert "thread" not in str(found["device"])
    for name in ("latency_ms", "step_ms"):
        assert 0 < found[f"{name}_q1"] <= found[name] <= found[f"{name}_q3"]  # type: ignore[operator]  # numbers
    assert found["examples_per_s"] == pytest.approx(1e3 * found["batch"] / found["step_ms"])  # type: ignore[operator]
    assert Path(str(found["trace"])).is_file()
    assert "time_cpu" in found


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_what_is_not_measured_is_left_out_with_its_reason() -> None:
    found = profile(DigitsViT(), TINY, SMOKE, 2, None)
    assert "energy_j" not in found
    assert "energy is measured on NVIDIA GPUs" in str(found["profile_note"])
    assert "trace" not in found


def test_the_tasks_own_step_is_measured_by_the_recipe_it_is_given() -> None:
    task, recipe = Own(), StepRecipe()
    found = profile(task, Own.base, recipe, None, None)
    (run,) = task.runs
    assert (run.recipe, run.architecture, run.threads) == (recipe, Own.base, 1)
    assert task.prepared == 1
    assert found["batch"] == 48
    for_energy = "energy_j" in found
    assert task.steps == 2 + timing.WARM_UP_CALLS + timing.LEAST_CALLS + for_energy  # two for the memory
    assert 16 * 2**20 <= found["peak_memory_bytes"] < 17 * 2**20  # type: ignore[operator]  # a number
    assert "loss without meaning" not in str(found.get("profile_note"))


def test_a_task_without_a_step_of_its_own_is_measured_by_the_one_for_all_and_needs_no_data() -> None:
    class Refusing(Own):
        def training_step(self, run: Run) -> Callable[[], None]:
            raise NotImplementedError

    class WithoutData(Toy):
        def prepare(self) -> None:
            raise UserError("there is no data")

    for task in (Refusing(), WithoutData()):
        found = profile(task, task.base, StepRecipe(), None, None)
        assert found["batch"] == 48
        assert "task 'toy' gives no training step" in str(found["profile_note"])


def test_data_that_is_missing_is_the_tasks_to_say() -> None:
    class WithoutData(Own):
        def prepare(self) -> None:
            raise UserError("there is no data")

    with pytest.raises(UserError, match="no data"):
        profile(WithoutData(), Own.base, StepRecipe(), None, None)


def test_threads_are_set_while_it_is_measured_and_said() -> None:
    task, before = Own(), torch.get_num_threads()
    assert profile(task, Own.base, StepRecipe(), None, None, threads=2)["threads"] == 2
    assert task.threads == {2}
    assert task.runs[0].threads == 2
    assert torch.get_num_threads() == before
    with pytest.raises(UserError, match="at least 1, got 0"):
        profile(task, Own.base, StepRecipe(), None, None, threads=0)


@pytest.mark.parametrize(("batch", "most", "accumulate"), [(48, None, 3), (16, None, 1), (32, None, 2), (17, None, 17),
                                                           (24, 8, 3), (24, 7, 4), (1, 1, 1)])  # fmt: skip
def test_another_batch_keeps_the_pass_no_larger_than_it_was(batch: int, most: int | None, accumulate: int) -> None:
    assert with_batch(StepRecipe(), batch, most) == StepRecipe(batch=batch, accumulate=accumulate)


def test_a_recipe_without_passes_or_batch_takes_what_it_can() -> None:
    assert with_batch(GoalPointMaze.presets["smoke"], 7).batch == 7
    assert with_batch(ToyRecipe(), 7) == ToyRecipe()
    growing = Recipe(hours=1.0, batch=64, accumulate=4, batch_ramp=0.6, lr=1.0)
    assert with_batch(growing, 8) == Recipe(hours=1.0, batch=8, lr=1.0)
    assert profile(Toy(), Toy.base, ToyRecipe(), 7, None)["batch"] == 7


def test_a_batch_that_cannot_be_set_is_refused() -> None:
    class Batchless(Own):
        def training_step(self, run: Run) -> Callable[[], None]:
            return lambda: None

    assert "batch" not in profile(Batchless(), Own.base, ToyRecipe(), None, None)
    with pytest.raises(UserError, match="has no batch that could be set"):
        profile(Batchless(), Own.base, ToyRecipe(), 7, None)


def test_the_step_for_all_takes_a_batch_in_the_recipes_passes() -> None:
    sizes: list[int] = []

    class Noting(Toy):
        def build(self, architecture: Architecture) -> nn.Module:
            network = super().build(architecture)
            network.register_forward_hook(lambda module, inputs, output: sizes.append(len(inputs[0])))
            return network

    generic_step(Noting(), Toy.base, StepRecipe(), 48, torch.device("cpu"))()
    assert sizes == [16, 16, 16]


def test_the_step_for_all_is_of_the_recipes_optimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutStep(DigitsViT):
        def training_step(self, run: Run) -> Callable[[], None]:
            raise NotImplementedError

    stepped: list[str] = []
    hook = register_optimizer_step_post_hook(lambda optimizer, *_: stepped.append(type(optimizer).__name__))
    try:
        found = profile(WithoutStep(), TINY, replace(SMOKE, optimizer="muon"), 4, None)
        assert {*stepped} == {"Muon", "AdamW"}
        stepped.clear()
        generic_step(Toy(), Toy.base, ToyRecipe(), 4, torch.device("cpu"))()
        assert stepped == ["AdamW"]
    finally:
        hook.remove()
    assert "one of muon on a loss without meaning was measured" in str(found["profile_note"])


def test_memory_shows_what_an_optimiser_keeps() -> None:
    wide = Architecture(depth=2, width=256, heads=1, head_dim=256, hidden=256)

    def peak(optimizer: str) -> int:
        found = profile(DigitsViT(), wide, replace(SMOKE, optimizer=optimizer), 1, None)["peak_memory_bytes"]
        assert isinstance(found, int)
        return found

    weights = 4 * DigitsViT().closed_form(wide).params
    plain, once, galore, muon, twice = map(peak, ("sgd", "sgd(momentum=0.9)", "galore(rank=4)", "muon", "adamw"))
    assert once - plain == pytest.approx(weights, rel=0.1)
    assert twice - plain == pytest.approx(2 * weights, rel=0.1)
    assert plain < galore < once < twice
    assert plain < muon < twice


@pytest.mark.parametrize("example", [torch.zeros(1, 8), {"input": torch.zeros(1, 8)}, (torch.zeros(1, 8),)])
def test_the_step_for_all_takes_any_kind_of_inputs(example: Inputs) -> None:
    class Other(Toy):
        def example(self) -> Any:
            return example

    assert profile(Other(), Toy.base, ToyRecipe(), 4, None)["batch"] == 4


def test_an_example_that_a_task_keeps_goes_where_the_network_is() -> None:
    class Keeps(Toy):
        kept = torch.zeros(1, 8)

        def example(self) -> Any:
            return self.kept

    inference(Keeps(), Toy.base, ToyRecipe(), torch.device("meta"))()


def test_few_steps_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "PATIENCE_S", 0.0)
    assert "quartiles are of 3 steps" in str(profile(Own(), Own.base, StepRecipe(), None, None)["profile_note"])


def test_what_takes_long_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    profile_what_fits(Own(), Own.base, StepRecipe(), None, None)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("tasks.silence.SILENCE_S", 0.0)
    profile_what_fits(Own(), Own.base, StepRecipe(), None, None)
    assert capsys.readouterr().err == f"profiling toy, {Own.base} ...\n"


def without_memory_for(examples: int) -> Callable[..., object]:
    measured = profiling._measured

    def fail(task: Task, run: Run, batch: int | None, kept: Path | None) -> object:
        if (batch or run.recipe.batch) >= examples:
            raise torch.OutOfMemoryError("no memory")
        return measured(task, run, batch, kept)

    return fail


def test_where_memory_runs_out_the_batch_is_halved_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_measured", without_memory_for(3))
    found = profile_what_fits(DigitsViT(), TINY, SMOKE, 8, None)
    assert found["batch"] == 2
    assert "batch 2 instead of 8 for lack of memory" in str(found["profile_note"])


def test_the_recipes_passes_shrink_with_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_measured", without_memory_for(40))
    task = Own()
    assert profile_what_fits(task, Own.base, StepRecipe(), None, None)["batch"] == 24
    assert task.runs[0].recipe == StepRecipe(batch=24, accumulate=3)


def test_no_memory_for_a_batch_that_cannot_be_set_is_a_mistake() -> None:
    class Large(Own):
        def training_step(self, run: Run) -> Callable[[], None]:
            raise torch.OutOfMemoryError("no memory")

    with pytest.raises(UserError, match="which cannot be set"):
        profile_what_fits(Large(), Own.base, ToyRecipe(), None, None)


def job(**changes: object) -> EvaluationJob:
    return EvaluationJob(**{"task": "digits-vit", "architecture": TINY, "preset": "smoke", "seed": 0, **changes})  # type: ignore[arg-type]


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


def test_no_memory_for_the_presets_batch_is_a_failure_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_measured", without_memory_for(SMOKE.batch))
    row = evaluate(job(profiled=True))
    assert row.status == "failed"
    assert str(row.error).startswith("out-of-memory: OutOfMemoryError")


def test_no_memory_for_one_example_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_measured", without_memory_for(1))
    with pytest.raises(UserError, match="one example"):
        profile_what_fits(DigitsViT(), TINY, SMOKE, 4, None)


def test_a_folder_of_traces_that_cannot_be_made_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be made"):
        profile(DigitsViT(), TINY, SMOKE, 2, tmp_path / "file" / "trace")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_limit_on_what_cannot_be_measured_fails_the_evaluation() -> None:
    row = evaluate(job(limits="energy_j<=1"))
    assert row.status == "failed"
    assert "energy_j is bounded and was not measured" in str(row.error)
