"""Supervised training: results, interruptions and resume."""

import pickle
import re
import shutil
import signal
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from expect import raises, warns
from grouped import grouped
from search_spaces import Architecture
from search_spaces.topologies.decay import split_by_decay
from tasks.base import Diverged, FitResult
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits
from tasks.load import load_task
from tasks.recipes.recipe import Precision, Recipe
from tasks.run import CONTINUE, STOP, Decision, Run
from tasks.training.classification import ClassificationTask

MOONS = load_task(f"{Path(__file__).parents[1]}/moons.py:Moons")
CPU = torch.device("cpu")
SHAPE = Architecture(depth=1, width=8, hidden=8)


def examples(count: int, seed: int) -> Batch:
    inputs = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return inputs, (inputs.prod(dim=1) > 0).long()


def test_a_training_reports_its_progress() -> None:
    progress: list[tuple[int, int]] = []
    run = Run(architecture=SHAPE, recipe=Corners.presets["smoke"], seed=0, on_step=lambda *at: progress.append(at))
    Corners().fit(run)
    assert progress == [(step, 30) for step in range(1, 31)]


class Corners(ClassificationTask):
    """Which pair of quadrants is a point in? A perceptron with dropout."""

    name = "corners"
    version = 1
    base = SHAPE
    presets = {  # noqa: RUF012
        "smoke": Recipe(steps=30, batch=16, lr=0.01, accumulate=2),
        "whole": Recipe(steps=30, batch=16, lr=0.01),
        "wild": Recipe(steps=30, batch=16, lr=1e30),
    }

    def load(self) -> TensorSplits:
        return TensorSplits(examples(100, 1), examples(50, 2), examples(50, 3))

    def build(self, architecture: Architecture) -> nn.Module:
        """Points [B, 2] to class scores [B, 2]."""
        return nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 2))

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, 2),)


def test_a_training_equals_a_plain_loop() -> None:
    recipe = MOONS.presets["smoke"]
    splits = MOONS.load()
    torch.manual_seed(5)
    network = MOONS.build(MOONS.base)
    with_decay, exempt = split_by_decay(network)
    optimizer = torch.optim.AdamW(
        [{"params": with_decay, "weight_decay": recipe.weight_decay}, {"params": exempt, "weight_decay": 0.0}],
        betas=recipe.betas,
        fused=True,
    )
    batches = splits.training_batches(recipe, 5, (), CPU)
    for step in range(40):
        (inputs, labels), _ = next(batches)
        optimizer.zero_grad()
        F.cross_entropy(network(inputs), labels).backward()
        nn.utils.clip_grad_norm_(with_decay + exempt, recipe.clip)
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate(step, 40)
        optimizer.step()
    network.eval()
    with torch.no_grad():
        outputs = [(network(inputs), labels) for inputs, labels in splits.evaluation_batches("test", recipe, CPU)]
    right = [(scores.argmax(dim=1) == labels).double() for scores, labels in outputs]
    losses = [F.cross_entropy(scores, labels, reduction="none").double() for scores, labels in outputs]
    result = MOONS.fit(Run(architecture=MOONS.base, recipe=MOONS.presets["smoke"], seed=5))
    assert result.steps == 40
    assert result.test["accuracy"] == torch.cat(right).mean().item()
    assert result.test["loss"] == torch.cat(losses).mean().item()


def test_gradient_accumulation_equals_a_whole_batch() -> None:
    class Still(Corners):
        def build(self, architecture: Architecture) -> nn.Module:
            return nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Linear(8, 2))

        def load(self) -> TensorSplits:
            inputs, labels = examples(8, 1)  # a batch of 16 contains all examples twice in any order
            return TensorSplits((inputs, labels), examples(50, 2), examples(50, 3))

    in_parts, whole = (
        Still().fit(Run(architecture=SHAPE, recipe=Still.presets[preset], seed=0)) for preset in ("smoke", "whole")
    )
    assert in_parts.steps == whole.steps == 30
    assert in_parts.test["loss"] == pytest.approx(whole.test["loss"], rel=1e-4)


SMOKE = Corners.presets["smoke"]


class Interruption(Exception):
    pass


def fit_until(stop: int, folder: Path, seed: int = 0, recipe: Recipe = SMOKE) -> None:
    """Train until the first report at or after a step, then raise Interruption."""

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        if step >= stop:
            raise Interruption

    with pytest.raises(Interruption):
        Corners().fit(Run(architecture=SHAPE, recipe=recipe, seed=seed, folder=folder, report=report))


def fit_corners(
    folder: Path | None, seed: int = 0, recipe: Recipe = SMOKE
) -> tuple[FitResult, list[tuple[int, dict[str, float]]]]:
    curve: list[tuple[int, dict[str, float]]] = []
    result = Corners().fit(
        Run(
            architecture=SHAPE,
            recipe=recipe,
            seed=seed,
            folder=folder,
            report=lambda step, metrics: curve.append((step, dict(metrics))) or CONTINUE,
        )
    )
    return result, curve


@cache
def whole_training() -> tuple[FitResult, list[tuple[int, dict[str, float]]]]:
    """An uninterrupted training with seed 0, and its curve."""
    return fit_corners(None)


@pytest.mark.usefixtures("checkpoint_each_step")
def test_resume_after_an_interruption_gives_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight = whole_training()
    fit_until(12, tmp_path)
    fit_until(18, tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".ckpt"}
    assert len(list(tmp_path.iterdir())) == 2
    starts = []
    training = TensorSplits.training_batches
    monkeypatch.setattr(
        TensorSplits,
        "training_batches",
        lambda self, recipe, seed, start, *more: starts.append(start) or training(self, recipe, seed, start, *more),
    )
    assert fit_corners(tmp_path) == straight
    assert starts == [(34,)]  # two micro-batches per step; step 18 was not saved
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("checkpoint_each_step")
def test_a_checkpoint_of_another_run_is_not_resumed(tmp_path: Path) -> None:
    fit_until(12, tmp_path, seed=1)
    assert fit_corners(tmp_path) == whole_training()


@pytest.mark.usefixtures("checkpoint_each_step")
def test_a_damaged_checkpoint_is_quarantined(tmp_path: Path) -> None:
    recipe = replace(SMOKE, steps=8)
    straight = fit_corners(None, recipe=recipe)
    (tmp_path / "whole").mkdir()
    fit_until(4, tmp_path / "whole", recipe=recipe)
    with grouped() as case:
        for damaged in (1, 2):  # the newest or both
            for damage in ("cut", "empty", "program", "a bit"):
                with case(f"{damaged}, {damage}"):
                    folder = tmp_path / "run"
                    shutil.rmtree(folder, ignore_errors=True)
                    shutil.copytree(tmp_path / "whole", folder)
                    for file in sorted(folder.iterdir())[-damaged:]:
                        content = bytearray(file.read_bytes())
                        content[len(content) // 2] ^= 4
                        program = pickle.dumps(Program(folder / "executed"))
                        kinds = {"cut": content[:3000], "empty": b"", "program": program, "a bit": content}
                        file.write_bytes(kinds[damage])
                    with warns("bad-file") as notices:
                        result = fit_corners(folder, recipe=recipe)
                    assert len({notice.fields["path"] for notice in notices}) == len(notices) == damaged
                    assert result == straight
                    assert list(folder.iterdir()) == []


class Program:
    """A pickle that makes a folder when it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return Path.mkdir, (self.folder,)


@pytest.mark.usefixtures("checkpoint_each_step")
def test_a_full_disk_does_not_stop_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    straight = whole_training()
    monkeypatch.setattr(torch, "save", full)
    with warns("unwritable", path=str(tmp_path)):
        assert fit_corners(tmp_path) == straight
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stop", [6, 18])
def test_a_stopped_training_has_its_metrics_and_can_be_resumed(tmp_path: Path, stop: int) -> None:
    whole, curve = whole_training()

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        return STOP if step >= stop else CONTINUE

    run = Run(architecture=SHAPE, recipe=Corners.presets["smoke"], seed=0, folder=tmp_path, report=report)
    partial = Corners().fit(run)
    assert (partial.steps, partial.metrics) == next(point for point in curve if point[0] == stop)
    assert partial.test == {}
    assert partial.network is not None
    assert [path.suffix for path in tmp_path.iterdir()] == [".ckpt"]
    result = Corners().fit(run)  # a second STOP does not train
    assert (result.steps, result.metrics) == (partial.steps, partial.metrics)
    assert fit_corners(tmp_path) == (whole, curve)
    assert list(tmp_path.iterdir()) == []


def test_a_training_from_weights_reports_them_first_and_may_be_stopped_there() -> None:
    start = Corners().build(SHAPE).state_dict()
    run = Run(architecture=SHAPE, recipe=Corners.presets["smoke"], seed=0, start=start, report=lambda *_: STOP)
    result = Corners().fit(run)
    assert result.steps == 0
    assert result.network is not None
    assert all(torch.equal(result.network.state_dict()[name], start[name]) for name in start)


def test_the_training_step_equals_that_of_fit() -> None:
    run = Run(architecture=SHAPE, recipe=Corners.presets["whole"], seed=0)
    expected_network = Corners().fit(run).network
    step = Corners().training_step(run)
    for _ in range(30):
        step()
    network = step.__self__.network  # type: ignore[attr-defined]
    assert expected_network is not None
    assert all(torch.equal(a, b) for a, b in zip(expected_network.parameters(), network.parameters(), strict=True))
    step()  # without running past the end


def test_threads_are_set_for_the_run_and_restored() -> None:
    during: list[int] = []
    before = torch.get_num_threads()

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        during.append(torch.get_num_threads())
        return CONTINUE

    recipe = replace(Corners.presets["smoke"], steps=2, reports=2, measured=8)
    Corners().fit(Run(architecture=SHAPE, recipe=recipe, seed=0, threads=2, report=report))
    assert set(during) == {2}
    assert torch.get_num_threads() == before


def test_a_loss_that_is_not_finite_ends_the_training_early() -> None:
    steps: list[int] = []
    with pytest.raises(Diverged) as caught:
        Corners().fit(
            Run(
                architecture=SHAPE,
                recipe=Corners.presets["wild"],
                seed=0,
                report=lambda step, metrics: steps.append(step) or CONTINUE,
            )
        )
    assert steps == []
    step, of = map(int, re.findall(r"\d+", str(caught.value)))
    assert 1 <= step < of == 30


def test_a_keyboard_interrupt_ends_a_training() -> None:
    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        Corners().fit(Run(architecture=SHAPE, recipe=Corners.presets["smoke"], seed=0, report=report))
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "bf16-true"])
def test_a_training_prints_nothing(precision: Precision, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recipe = replace(Corners.presets["smoke"], precision=precision)
    with warnings.catch_warnings(record=True) as warning_list:
        warnings.simplefilter("always")
        Corners().fit(Run(architecture=SHAPE, recipe=recipe, seed=0, folder=tmp_path))
    assert capfd.readouterr() == ("", "")
    assert [str(warning.message) for warning in warning_list] == []


def test_dropout_differs_between_micro_batches() -> None:
    masks: list[tuple[bool, ...]] = []

    def look(dropout: nn.Module, inputs: object, outputs: Tensor) -> None:
        if dropout.training:
            masks.append(tuple((outputs == 0).flatten().tolist()))

    class RecordingDropout(Corners):
        def build(self, architecture: Architecture) -> nn.Module:
            network = super().build(architecture)
            network.get_submodule("2").register_forward_hook(look)
            return network

    recipe = replace(Corners.presets["smoke"], steps=5)
    RecordingDropout().fit(Run(architecture=SHAPE, recipe=recipe, seed=0))
    assert len({*masks}) == len(masks) == 5 * recipe.accumulate


def test_test_examples_do_not_change_the_training() -> None:
    class Other(Corners):
        def load(self) -> TensorSplits:
            return TensorSplits(examples(100, 1), examples(50, 2), examples(20, 4))

    first, second = (
        task.fit(Run(architecture=SHAPE, recipe=task.presets["smoke"], seed=0)) for task in (Corners(), Other())
    )
    assert first.metrics == second.metrics
    assert first.test != second.test


def test_recomputed_mixing_needs_a_stack() -> None:
    recipe = replace(Corners.presets["smoke"], recompute_mixing=True)
    with raises("unsupported", option="recompute_mixing", task="corners"):
        Corners().fit(Run(architecture=SHAPE, recipe=recipe, seed=0))


@pytest.mark.parametrize("result", [None, (examples(3, 0), examples(3, 1), examples(3, 2)), "data"])
def test_load_must_return_splits(result: object) -> None:
    class Wrong(Corners):
        def load(self) -> TensorSplits:
            return result  # type: ignore[return-value]

    with raises("bad-plugin", task="corners", value=type(result).__name__):
        Wrong().prepare()


def test_errors_of_load_have_their_place(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    text = Path(f"{Path(__file__).parents[1]}/moons.py").read_text()
    head, _, tail = text.partition("def load(self)")
    line = head.count("\n") + 2
    signature, _, body = tail.partition(":\n")
    file.write_text(f"{head}def load(self){signature}:\n        1 / 0\n{body}")
    with raises("bad-plugin", task="moons", cause="ZeroDivisionError") as info:
        load_task(f"{file}:Moons").prepare()
    assert f"task.py, line {line}" in str(info.value)
