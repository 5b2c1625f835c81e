"""Profiles: measurements, reasons for missing ones, and networks over a limit."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from expect import raises
from nas.budget.bounds import parse_budget
from nas.costs.profile import energy, timing
from nas.costs.profile.profile import profile, profile_largest_batch
from nas.costs.profile.steps import generic_step, inference, with_batch
from nas.evaluation.evaluate import evaluate
from nas.evaluation.failures import OUT_OF_MEMORY
from nas.request.job import EvaluationJob
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError
from tasks.base import Task
from tasks.data.batches import Inputs
from tasks.goal_rl.goal_tasks import GoalPointMaze
from tasks.recipes.recipe import Recipe
from tasks.run import Run
from tasks.vision.digits import DigitsViT
from toy_searches import TOYS
from toy_tasks import Toy, ToyRecipe

TINY = Architecture(depth=1, width=8, heads=1, head_dim=8, hidden=8)
SMOKE = DigitsViT.presets["smoke"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecipe:
    """The recipe of OwnStep's steps."""

    batch: int = 48
    accumulate: int = 3


class OwnStep(Toy):
    """A task with its own training step, which records its runs."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []
        self.steps = self.preparations = 0
        self.threads: set[int] = set()

    def prepare(self) -> None:
        self.preparations += 1

    def training_step(self, run: Run) -> Callable[[], None]:
        self.runs.append(run)
        weights = torch.ones(run.recipe.batch // run.recipe.accumulate, 2**18, device=run.device)  # a MiB an example

        def step() -> None:
            self.steps += 1
            self.threads.add(torch.get_num_threads())
            weights.mul_(0.5)

        return step


def notes_of(record: Any) -> list[str]:
    return [note for note in str(record.get("profile_note", "")).split("; ") if note]


def numbers(note: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", note)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM_UP_S", 0.0)
    monkeypatch.setattr(timing, "MEASURE_S", 0.0)
    monkeypatch.setattr(energy, "WINDOW_S", 0.0)


def test_profile_has_times_memory_and_a_trace(tmp_path: Path) -> None:
    record = profile(DigitsViT(), TINY, SMOKE, None, tmp_path / "a.b")
    assert record["batch"] == SMOKE.batch
    assert record["threads"] == 1
    assert "thread" not in str(record["device"])
    for name in ("latency_ms", "step_ms"):
        assert 0 < record[f"{name}_q1"] <= record[name] <= record[f"{name}_q3"]  # type: ignore[operator]  # numbers
    assert record["examples_per_s"] == pytest.approx(1e3 * record["batch"] / record["step_ms"])  # type: ignore[operator]
    assert Path(str(record["trace"])).is_file()
    assert "time_cpu" in record


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_missing_energy_has_a_reason() -> None:
    record = profile(DigitsViT(), TINY, SMOKE, 2, None)
    assert "energy_j" not in record
    _, why_not = energy.energy_of(lambda: None, torch.device("cpu"))
    assert notes_of(record)[-1] == why_not
    assert "trace" not in record


def test_own_step_of_a_task_is_measured_with_its_recipe() -> None:
    task, recipe = OwnStep(), StepRecipe()
    record = profile(task, OwnStep.base, recipe, None, None)
    (run,) = task.runs
    assert (run.recipe, run.architecture, run.threads) == (recipe, OwnStep.base, 1)
    assert task.preparations == 1
    assert record["batch"] == 48
    for_energy = "energy_j" in record
    assert task.steps == 2 + timing.WARM_UP_CALLS + timing.MIN_CALLS + for_energy  # two for the memory
    assert 16 * 2**20 <= record["peak_memory_bytes"] < 17 * 2**20  # type: ignore[operator]  # a number
    assert not [note for note in notes_of(record) if "'toy'" in note]


def test_task_without_its_own_step_gets_a_generic_one_and_random_data() -> None:
    class WithoutOwnStep(OwnStep):
        def training_step(self, run: Run) -> Callable[[], None]:
            raise NotImplementedError

    class WithoutData(Toy):
        def prepare(self) -> None:
            raise UserError("missing-data", "there is no data.")

    for task in (WithoutOwnStep(), WithoutData()):
        record = profile(task, task.base, StepRecipe(), None, None)
        assert record["batch"] == 48
        assert "'toy'" in notes_of(record)[0]


def test_missing_data_of_a_task_is_a_user_error() -> None:
    class WithoutData(OwnStep):
        def prepare(self) -> None:
            raise UserError("missing-data", "there is no data.", task="toy")

    with raises("missing-data", task="toy"):
        profile(WithoutData(), OwnStep.base, StepRecipe(), None, None)


def test_profile_sets_and_records_threads() -> None:
    task, before = OwnStep(), torch.get_num_threads()
    assert profile(task, OwnStep.base, StepRecipe(), None, None, threads=2)["threads"] == 2
    assert task.threads == {2}
    assert task.runs[0].threads == 2
    assert torch.get_num_threads() == before
    with raises("out-of-range", option="--threads", value=0, least=1):
        profile(task, OwnStep.base, StepRecipe(), None, None, threads=0)


def test_another_batch_keeps_passes_no_larger_than_before() -> None:
    expected = [(48, None, 3), (16, None, 1), (32, None, 2), (17, None, 17), (24, 8, 3), (24, 7, 4), (1, 1, 1)]
    recipes = [with_batch(StepRecipe(), batch, most) for batch, most, _ in expected]
    assert recipes == [StepRecipe(batch=batch, accumulate=accumulate) for batch, _, accumulate in expected]


def test_batch_of_a_recipe_without_passes_or_without_a_batch() -> None:
    assert with_batch(GoalPointMaze.presets["smoke"], 7).batch == 7
    assert with_batch(ToyRecipe(), 7) == ToyRecipe()
    ramp = Recipe(hours=1.0, batch=64, accumulate=4, batch_ramp=0.6, lr=1.0)
    assert with_batch(ramp, 8) == Recipe(hours=1.0, batch=8, lr=1.0)
    assert profile(Toy(), Toy.base, ToyRecipe(), 7, None)["batch"] == 7


def test_batch_for_a_step_without_one_is_an_error() -> None:
    class Batchless(OwnStep):
        def training_step(self, run: Run) -> Callable[[], None]:
            return lambda: None

    assert "batch" not in profile(Batchless(), OwnStep.base, ToyRecipe(), None, None)
    with raises("unsupported", option="--batch", value=7, task="toy"):
        profile(Batchless(), OwnStep.base, ToyRecipe(), 7, None)


def test_generic_step_takes_its_batch_in_the_recipes_passes() -> None:
    sizes: list[int] = []

    class RecordsSizes(Toy):
        def build(self, architecture: Architecture) -> nn.Module:
            network = super().build(architecture)
            network.register_forward_hook(lambda module, inputs, output: sizes.append(len(inputs[0])))
            return network

    generic_step(RecordsSizes(), Toy.base, StepRecipe(), 48, torch.device("cpu"))()
    assert sizes == [16, 16, 16]


def test_generic_step_uses_the_recipes_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutStep(DigitsViT):
        def training_step(self, run: Run) -> Callable[[], None]:
            raise NotImplementedError

    optimizers: list[str] = []
    hook = register_optimizer_step_post_hook(lambda optimizer, *_: optimizers.append(type(optimizer).__name__))
    try:
        record = profile(WithoutStep(), TINY, replace(SMOKE, optimizer="muon"), 4, None)
        assert {*optimizers} == {"Muon", "AdamW"}
        optimizers.clear()
        generic_step(Toy(), Toy.base, ToyRecipe(), 4, torch.device("cpu"))()
        assert optimizers == ["AdamW"]
    finally:
        hook.remove()
    assert "muon" in notes_of(record)[0]


def test_peak_memory_includes_the_state_of_the_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM_UP_CALLS", 1)  # memory is measured before
    monkeypatch.setattr(timing, "MIN_CALLS", 2)
    wide = Architecture(depth=2, width=64, heads=1, head_dim=64, hidden=64)

    def peak(optimizer: str) -> int:
        size = profile(DigitsViT(), wide, replace(SMOKE, optimizer=optimizer), 1, None)["peak_memory_bytes"]
        assert isinstance(size, int)
        return size

    weights = 4 * DigitsViT().closed_form(wide).params
    plain, once, galore, muon, twice = map(peak, ("sgd", "sgd(momentum=0.9)", "galore(rank=4)", "muon", "adamw"))
    assert once - plain == pytest.approx(weights, rel=0.1)
    assert twice - plain == pytest.approx(2 * weights, rel=0.1)
    assert plain < galore < once < twice
    assert plain < muon < twice


def test_generic_step_takes_any_kind_of_inputs() -> None:
    examples: list[Inputs] = [torch.zeros(1, 8), {"input": torch.zeros(1, 8)}, (torch.zeros(1, 8),)]

    class Other(Toy):
        def example(self) -> Any:
            return examples[-1]

    while examples:
        assert profile(Other(), Toy.base, ToyRecipe(), 4, None)["batch"] == 4
        examples.pop()


def test_cached_example_moves_to_the_device_of_the_network() -> None:
    class CachedExample(Toy):
        inputs = torch.zeros(1, 8)

        def example(self) -> Any:
            return self.inputs

    inference(CachedExample(), Toy.base, ToyRecipe(), torch.device("meta"))()


def test_note_gives_the_number_of_steps_if_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "PATIENCE_S", 0.0)
    assert numbers(notes_of(profile(OwnStep(), OwnStep.base, StepRecipe(), None, None))[0]) == [3]


def test_long_profile_prints_a_progress_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    profile_largest_batch(OwnStep(), OwnStep.base, StepRecipe(), None, None)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("search_spaces.support.quiet_timer.SILENCE_S", 0.0)
    profile_largest_batch(OwnStep(), OwnStep.base, StepRecipe(), None, None)
    (line,) = capsys.readouterr().err.splitlines()
    assert f" toy, {OwnStep.base} " in line


def short_of_memory(kind: type[Task], examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise OutOfMemoryError in steps of a task with at least so many examples."""
    step = kind.training_step

    def training_step(task: Task, run: Run) -> Callable[[], None]:
        if run.recipe.batch >= examples:
            raise torch.OutOfMemoryError("no memory")
        return step(task, run)

    monkeypatch.setattr(kind, "training_step", training_step)


def test_batch_is_halved_until_there_is_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_memory(DigitsViT, 3, monkeypatch)
    record = profile_largest_batch(DigitsViT(), TINY, SMOKE, 8, None)
    assert record["batch"] == 2
    assert numbers(notes_of(record)[0]) == [2, 8]


def test_passes_shrink_with_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_memory(OwnStep, 40, monkeypatch)
    task = OwnStep()
    assert profile_largest_batch(task, OwnStep.base, StepRecipe(), None, None)["batch"] == 24
    assert task.runs[0].recipe == StepRecipe(batch=24, accumulate=3)


def test_no_memory_for_a_fixed_batch_is_a_user_error() -> None:
    class Large(OwnStep):
        def training_step(self, run: Run) -> Callable[[], None]:
            raise torch.OutOfMemoryError("no memory")

    with raises("too-large", task="toy", batch=None):
        profile_largest_batch(Large(), OwnStep.base, ToyRecipe(), None, None)


def job(**changes: object) -> EvaluationJob:
    fields = {"task": f"{TOYS}:Toy", "architecture": Toy.base, "preset": "smoke", "seed": 0, **changes}
    return EvaluationJob(**fields)  # type: ignore[arg-type]


def test_network_over_a_limit_gets_no_training() -> None:
    row = evaluate(job(limits=parse_budget(["latency_ms<=0.0001"])))
    assert row.status == "over-budget"
    assert row.steps == 0
    assert row.profile["latency_ms"] > 0.0001  # type: ignore[operator]  # a number
    assert "latency_ms<=0.0001" in str(row.error)


def test_network_within_a_limit_is_trained_and_keeps_its_profile() -> None:
    row = evaluate(job(limits=parse_budget(["latency_ms<=10000"])))
    assert row.status == "complete"
    assert row.columns()["latency_ms"] == row.profile["latency_ms"]


def test_no_memory_for_the_presets_batch_fails_the_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_memory(DigitsViT, SMOKE.batch, monkeypatch)
    row = evaluate(job(task="digits-vit", architecture=TINY, profiled=True))
    assert row.status == "failed"
    assert str(row.error).startswith(f"{OUT_OF_MEMORY}: OutOfMemoryError")


def test_no_memory_for_one_example_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_memory(DigitsViT, 1, monkeypatch)
    with raises("too-large", task="digits-vit", batch=1):
        profile_largest_batch(DigitsViT(), TINY, SMOKE, 4, None)


def test_unwritable_folder_of_traces_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises("unwritable", path=str(tmp_path / "file")):
        profile(DigitsViT(), TINY, SMOKE, 2, tmp_path / "file" / "trace")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_limit_on_energy_without_a_gpu_fails_the_evaluation() -> None:
    row = evaluate(job(limits=parse_budget(["energy_j<=1"])))
    assert row.status == "failed"
    assert "energy_j" in str(row.error)
