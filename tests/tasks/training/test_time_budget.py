"""Trainings with a budget of hours, on a fake clock."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

import tasks.training.time_budget
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.rank import ALONE, RankInfo
from tasks.base import FitResult
from tasks.data.batches import Batch
from tasks.data.splits import Part, TensorSplits
from tasks.recipes.recipe import Recipe
from tasks.run import CONTINUE, STOP, Decision, Run
from tasks.training.classification import ClassificationTask
from tasks.training.time_budget import TrainingClock

SHAPE = Architecture(depth=1, width=8, hidden=8)
HOUR = Recipe(hours=1.0, batch=12, accumulate=6, lr=0.02, warmup=0.5, schedule="linear", reports=4)
PASS, MEASUREMENT = 37.0, 10_000.0
"""Seconds of a micro-batch, and of a measured batch."""

Progress = list[tuple[int, int]]


class FakeTime:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1e6

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    time = FakeTime()
    monkeypatch.setattr(tasks.training.time_budget, "perf_counter", time)
    return time


class Slow(ClassificationTask):
    """Is a point inside a circle? Each pass takes fake time."""

    name = "slow"
    version = 1
    base = SHAPE
    presets = {"smoke": HOUR, "proxy": HOUR}  # noqa: RUF012

    def __init__(self, time: FakeTime) -> None:
        super().__init__()
        self.time = time
        self.passes = 0

    def load(self) -> TensorSplits:
        return Endless(*(points(count, seed) for seed, count in enumerate((101, 12, 7))))

    def build(self, architecture: Architecture) -> nn.Module:
        """Points [B, 2] to class scores [B, 2]."""
        return nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 2))

    def example(self) -> Tensor:
        return torch.zeros(1, 2)

    def loss(self, outputs: Tensor, targets: Tensor, recipe: Recipe) -> Tensor:
        self.time.now += PASS
        self.passes += 1
        return super().loss(outputs, targets, recipe)

    def measure(self, outputs: Tensor, targets: Tensor) -> Mapping[str, Tensor]:
        self.time.now += MEASUREMENT
        return super().measure(outputs, targets)


class Endless(TensorSplits):
    """Examples of unknown number."""

    def training_batches(
        self, recipe: Recipe, seed: int, start: tuple[int, ...], device: torch.device, share: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, tuple[int, ...]]]:
        for number in range(sum(start), 10_000):
            yield points(recipe.micro_batch, 100 + number), (number + 1,)

    @property
    def num_examples(self) -> int:
        raise AssertionError("to train for hours, nobody must count the examples")

    def counters(
        self, part: Part, recipe: Recipe, position: tuple[int, ...], share: RankInfo = ALONE
    ) -> dict[str, float]:
        return {"micro_batches": sum(position)}


def points(count: int, seed: int) -> Batch:
    inputs = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return inputs, (inputs.norm(dim=1) > 1).long()


def fit(
    time: FakeTime,
    recipe: Recipe = HOUR,
    *,
    folder: Path | None = None,
    stop: int | None = None,
    progress: Progress | None = None,
) -> tuple[FitResult, list[tuple[int, dict[str, float]]]]:
    """Train up to report number `stop`."""
    curve: list[tuple[int, dict[str, float]]] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append((step, dict(metrics)))
        return STOP if len(curve) == stop else CONTINUE

    say = (lambda *at: progress.append(at)) if progress is not None else (lambda *at: None)
    run = Run(architecture=SHAPE, recipe=recipe, seed=0, folder=folder, report=report, on_step=say)
    return Slow(time).fit(run), curve


def record_steps(time: FakeTime, recipe: Recipe) -> list[tuple[float, float]]:
    """The time at the end of each step's micro-batches, and its learning rate."""
    steps: list[tuple[float, float]] = []
    began = time.now

    def before(optimizer: Any, *_: object) -> None:
        steps.append((time.now - began, optimizer.param_groups[0]["lr"]))

    hook = register_optimizer_step_pre_hook(before)
    try:
        fit(time, replace(recipe, reports=1))
    finally:
        hook.remove()
    return steps


def triangle(fraction: float, peak: float, warmup: float) -> float:
    """The triangular schedule over the spent share of the budget."""
    return peak * (fraction / warmup if fraction < warmup else (1 - fraction) / (1 - warmup))


@pytest.mark.parametrize("ramp", [0.0, 0.6])
def test_the_learning_rate_follows_the_share_of_hours_spent(fake: FakeTime, ramp: float) -> None:
    for warmup in (0.5, 0.75):
        steps = record_steps(fake, replace(HOUR, warmup=warmup, batch_ramp=ramp))
        ends = [0.0, *(end for end, _ in steps)]
        for began, (_, rate) in zip(ends, steps, strict=False):
            assert rate == pytest.approx(triangle(began / 3600, 0.02, warmup), rel=1e-4, abs=1e-7)
        assert max(rate for _, rate in steps) > 0.9 * 0.02
        assert ends[-2] < 3600 <= ends[-1]


def test_the_first_beta_follows_the_learning_rate(fake: FakeTime) -> None:
    pairs: list[tuple[float, float]] = []
    hook = register_optimizer_step_pre_hook(
        lambda optimizer, *_: pairs.append(tuple(optimizer.param_groups[0][name] for name in ("lr", "betas")))
    )
    try:
        fit(fake, replace(HOUR, beta_cycle=(0.95, 0.85)))
    finally:
        hook.remove()
    for rate, betas in pairs:
        assert betas == (pytest.approx(0.95 - 0.1 * rate / 0.02), 0.999)  # type: ignore[comparison-overlap]


def rows_of(fraction: float, batch: int, micro_batch: int, ramp: float) -> int:
    """The batch of the cramming code at a share of the budget."""
    steps = 10**9  # more micro-batches than it ever uses
    fake_step = int(fraction * steps)
    batch_size_step = batch / (steps * ramp)
    return min(int(fake_step * batch_size_step // micro_batch + 1) * micro_batch, batch)


def test_the_batch_grows_with_the_share_of_hours_spent(fake: FakeTime) -> None:
    for ramp in (0.3, 0.6, 1.0):
        steps = record_steps(fake, replace(HOUR, batch_ramp=ramp))
        ends = [0.0, *(end for end, _ in steps)]
        micro_batches = [2 * (end - began) / PASS for began, end in pairwise(ends)]
        assert micro_batches == pytest.approx([rows_of(began / 3600, 12, 2, ramp) for began in ends[:-1]])
        assert set(micro_batches) == {2, 4, 6, 8, 10, 12}


def test_a_training_lasts_its_hours_without_time_for_measuring(fake: FakeTime) -> None:
    progress: Progress = []
    began = fake.now
    result, curve = fit(fake, progress=progress)
    steps = -(-3600 // (6 * PASS))
    assert result.steps == steps
    assert result.extra_metrics == {"micro_batches": 6 * steps}
    assert fake.now - began > MEASUREMENT
    after = [next(step for step in range(100) if step * 6 * PASS >= 3600 * part / 4) for part in (1, 2, 3)]
    assert [step for step, _ in curve] == after
    assert [step for step, _ in progress] == list(range(1, int(steps) + 1))
    assert all(1 <= step <= whole and (step < whole) == (step < steps) for step, whole in progress)
    assert progress[-1] == (steps, steps)
    for step, whole in progress[4:-1]:
        assert step / whole == pytest.approx(step * 6 * PASS / 3600, rel=0.1)


def test_one_step_may_take_longer_than_the_hours(fake: FakeTime) -> None:
    result, curve = fit(fake, replace(HOUR, hours=1e-9))
    assert (result.steps, curve) == (1, [])


@pytest.mark.parametrize("ramp", [0.0, 0.6])
def test_time_spent_before_a_stop_counts(fake: FakeTime, tmp_path: Path, ramp: float) -> None:
    recipe = replace(HOUR, batch_ramp=ramp)
    whole, curve = fit(fake, recipe)
    for stop in (1, 2):
        partial, _ = fit(fake, recipe, folder=tmp_path, stop=stop)
        assert (partial.steps, partial.metrics) == curve[stop - 1]
        fake.now += 1e9  # a pause before resume
    assert fit(fake, recipe, folder=tmp_path) == (whole, curve)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("checkpoint_each_step")
def test_lost_steps_are_repeated_without_time(fake: FakeTime, tmp_path: Path) -> None:
    class PowerCut(Exception):
        pass

    def until(step: int) -> Any:
        def callback(number: int, steps: int) -> None:
            if number == step:
                raise PowerCut

        return callback

    whole, _ = fit(fake)
    task = Slow(fake)
    run = Run(architecture=SHAPE, recipe=HOUR, seed=0, folder=tmp_path)
    for step in (7, 12):  # the last reported steps, not saved
        with pytest.raises(PowerCut):
            task.fit(replace(run, on_step=until(step)))
    assert task.fit(run) == whole
    assert task.passes == 6 * (whole.steps + 2)


def test_waiting_for_the_loss_counts_as_time(fake: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    finite = torch.isfinite

    def late(tensor: Tensor) -> Tensor:
        fake.now += 1000.0
        return finite(tensor)

    monkeypatch.setattr(torch, "isfinite", late)
    result, _ = fit(fake, replace(HOUR, accumulate=1, reports=1))
    # One pass per step, and a check of the loss every 20 steps.
    assert result.steps == next(n for n in range(1000) if n * PASS + n // 20 * 1000 >= 3600)


def test_a_batch_that_grows_is_the_mean_of_its_micro_batches(fake: FakeTime) -> None:
    """Against a plain loop of gradient descent without dropout."""

    class Plain(Slow):
        def build(self, architecture: Architecture) -> nn.Module:
            return nn.Linear(2, 2)

    recipe = Recipe(
        steps=10, batch=12, accumulate=6, batch_ramp=0.6, lr=0.1, warmup=0.0, optimizer="sgd", weight_decay=0.0, clip=0
    )
    result = Plain(fake).fit(Run(architecture=SHAPE, recipe=recipe, seed=3))
    torch.manual_seed(3)
    network, read = nn.Linear(2, 2), 0
    for step in range(10):
        size = rows_of(step / 10, 12, 2, 0.6)
        batches = [points(2, 100 + number) for number in range(read, read + size // 2)]
        inputs, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
        read += size // 2
        network.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        with torch.no_grad():
            for parameter in network.parameters():
                assert parameter.grad is not None
                parameter -= recipe.learning_rate(step, 10) * parameter.grad
    assert result.extra_metrics == {"micro_batches": read}
    assert result.network is not None
    for actual, expected in zip(result.network.parameters(), network.parameters(), strict=True):
        assert torch.allclose(actual, expected, atol=1e-6)


def test_a_single_training_step_has_the_whole_batch(fake: FakeTime) -> None:
    task = Slow(fake)
    step = task.training_step(Run(architecture=SHAPE, recipe=replace(HOUR, batch_ramp=0.6), seed=0))
    step()
    assert task.passes == 6


def test_all_processes_use_the_clock_of_the_first(fake: FakeTime) -> None:
    class Second(RankInfo):
        def first(self, value: Any) -> Any:
            return 2 * value

    clock = TrainingClock(1.0)
    with clock.running():
        fake.now += 900
    fake.now += 5000
    clock.update(ALONE)
    assert (clock.elapsed_ms, clock.part(4), clock.part(3), clock.steps(10)) == (900_000, 1, 0, 40)
    clock.update(Second(1, 2))
    assert (clock.elapsed_ms, clock.steps(10)) == (1_800_000, 20)
    clock.resume(3_500_000)
    with clock.running():
        fake.now += 900
    assert clock.elapsed_ms == 3_500_000
    clock.update(ALONE)
    assert (clock.elapsed_ms, clock.steps(10)) == (clock.limit_ms, 10)
