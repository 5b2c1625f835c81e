"""Tasks of LightningModules keep the contract."""

import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn

from expect import raises, warns
from search_spaces.architecture.checkpoint import weights_of
from tasks.adapters import lightning_module
from tasks.adapters.lightning_module import LightningRecipe, LightningTask
from tasks.base import Diverged, FitResult
from tasks.run import CONTINUE, STOP, Decision, Run
from tasks.training.checkpoint import Checkpoint
from tasks.training.contract import check_task
from tests.tasks.lightning_toys import (
    ByHand,
    Eachwise,
    InAnotherProcess,
    Net,
    NoisyPoints,
    OfTwo,
    OwnGenerator,
    Points,
    StreamPoints,
    Toy,
    Two,
    toy,
)

SMOKE = Toy.presets["smoke"]
TWO_EPOCHS = LightningRecipe(max_epochs=2, val_check_interval=0.5)
ONE_EPOCH = LightningRecipe(max_epochs=1, val_check_interval=0.5)
ONE_STEP = LightningRecipe(max_steps=1)

TASKS = {
    "gathered gradients and a generator": lambda: toy(data_of=OwnGenerator, accumulate_grad_batches=3),
    "optimizers by hand and random data": lambda: toy(ByHand, NoisyPoints),
    "no length": lambda: toy(data_of=StreamPoints, val_check_interval=4),
    "loaders of two lengths": lambda: toy(OfTwo, Two),
    "validation by batches and random data of another process": lambda: toy(
        data_of=InAnotherProcess, check_val_every_n_epoch=None, val_check_interval=3
    ),
}
"""All but the second use ReduceLROnPlateau."""


class Kill(Exception):
    pass


def fit(
    task: LightningTask, folder: Path | None = None, *, die: int = 0, recipe: Any = SMOKE, **run: Any
) -> tuple[FitResult, list[Any]]:
    """Train; raise Kill at report number `die`."""
    curve: list[Any] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append((step, dict(metrics)))
        if len(curve) == die:
            raise Kill
        return CONTINUE

    arguments = {"architecture": task.base, "recipe": recipe, "seed": 0, "report": report, "folder": folder} | run
    return task.fit(Run(**arguments)), curve


@pytest.fixture(scope="module")
def plain() -> FitResult:
    """A complete training of the toy."""
    return fit(toy())[0]


def test_a_lightning_task_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    task = toy(Eachwise)
    monkeypatch.setattr(type(task), "presets", {**task.presets, "smoke": ONE_EPOCH})
    check_task(task)


@pytest.mark.parametrize("kind", TASKS)
def test_resume_after_a_kill_gives_the_same_result(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, curve = fit(TASKS[kind](), recipe=TWO_EPOCHS)
    assert len(curve) >= 3
    # A checkpoint after each step: the training resumes from the step before the report.
    monkeypatch.setattr(Checkpoint, "due", lambda self: self.folder is not None)
    for die in (2, 3):
        with pytest.raises(Kill):
            fit(TASKS[kind](), tmp_path, die=die, recipe=TWO_EPOCHS)
    result, resumed_curve = fit(TASKS[kind](), tmp_path, recipe=TWO_EPOCHS)
    assert resumed_curve == curve
    assert result == whole
    assert not any(tmp_path.iterdir())


def test_a_training_resumes_within_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []

    class Recording(Net):
        def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
            batches.append(batch_idx)

    monkeypatch.setattr(Checkpoint, "due", lambda self: self.folder is not None)
    with pytest.raises(Kill):
        fit(toy(Recording), tmp_path, die=1, recipe=ONE_EPOCH)
    assert batches == [0, 1, 2, 3]
    fit(toy(Recording), tmp_path, recipe=ONE_EPOCH)
    assert batches[4:] == [3, 4, 5, 6, 7]


def test_early_stopping_by_a_callback_is_resumed(tmp_path: Path) -> None:
    def task() -> LightningTask:
        return toy(callbacks=[EarlyStopping("val_loss", patience=1, min_delta=10.0)])

    whole, curve = fit(task())
    assert whole.steps < 24
    with pytest.raises(Kill):
        fit(task(), tmp_path, die=1)
    assert fit(task(), tmp_path) == (whole, curve)


def test_hooks_are_called(plain: FitResult) -> None:
    calls = plain.network.calls  # type: ignore[union-attr]
    assert [calls.count(name) for name in ("backward", "train epoch")] == [24, 3]  # type: ignore[operator]
    assert calls.count("validation epoch") == 8  # type: ignore[operator]  # before training, six on the way, at the end


def test_hyperparameters_are_not_in_the_checkpoint(tmp_path: Path) -> None:
    toy().fit(Run(architecture=Toy.base, recipe=SMOKE, seed=0, folder=tmp_path, report=lambda *_: STOP))
    (file,) = tmp_path.iterdir()
    state = torch.load(file, weights_only=True)["state"]["training"]
    assert "state_dict" in state
    assert "hyper_parameters" not in state


class CtrlC(KeyboardInterrupt):
    pass


def meanings() -> tuple[Any, Any]:
    return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)


def test_ctrl_c_ends_a_training() -> None:
    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        raise CtrlC

    class Early(Points):
        def setup(self, stage: str) -> None:
            super().setup(stage)
            if self.trainer is not None:  # not while the fingerprint is computed
                raise CtrlC

    before = meanings()
    for task in (toy(), toy(data_of=Early)):
        with pytest.raises(CtrlC):
            task.fit(Run(architecture=Toy.base, recipe=SMOKE, seed=0, report=report))
        assert meanings() == before


def test_signal_handlers_are_unchanged_during_training() -> None:
    meant = []

    class Watching(Net):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            meant.append(meanings())
            return super().training_step(batch, batch_idx)

    before = meanings()
    fit(toy(Watching, num_sanity_val_steps=0), recipe=ONE_EPOCH)
    assert set(meant) == {before}


def test_a_metric_that_is_not_logged_is_refused_before_training() -> None:
    class Other(Net):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val/mse", self.off(batch).mean())

        def training_step(self, batch: Any, batch_idx: int) -> None:
            raise AssertionError("it has trained")

    with raises("bad-plugin", task="toy-lightning", option="loss", value="val_loss", choices=("val/mse",)):
        fit(toy(Other))


def test_a_metric_may_be_logged_under_another_name() -> None:
    class Other(Net):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val/loss", self.off(batch).mean())

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    task = toy(Other)
    type(task).logged_as = ("val/{}", "test_{}")
    assert fit(task, recipe=ONE_EPOCH)[0].metrics["loss"] > 0


def test_standard_errors_come_from_examples_or_the_log(plain: FitResult) -> None:
    result, curve = fit(toy(Eachwise, limit_val_batches=2), recipe=ONE_EPOCH)
    assert curve
    assert result.metrics["loss_se"] > 0
    assert result.test["loss_se"] == 0.25
    assert all("loss_se" in metrics for _, metrics in curve)
    assert set(plain.metrics) == {"loss"}


def test_the_standard_error_is_that_of_all_examples() -> None:
    class LabelAsError(Eachwise):
        def off(self, batch: Any) -> torch.Tensor:
            return super().off(batch) * 0 + batch[1]

    result, _ = fit(toy(LabelAsError), recipe=ONE_EPOCH)
    with lightning_module.seeded_rng(0):
        data = Points()
    with lightning_module.seeded_rng(0):
        data.setup("validate")
    y = torch.stack([example[1] for example in data.val]).double()
    assert result.metrics["loss"] == pytest.approx(y.mean().item())
    assert result.metrics["loss_se"] == pytest.approx((y.var(correction=0) / 20).sqrt().item())


def test_a_module_without_a_test_step_has_no_test_metrics() -> None:
    class WithoutTest(Net):
        test_step = L.LightningModule.test_step

    assert fit(toy(WithoutTest), recipe=ONE_EPOCH)[0].test == {}


def test_data_splits_are_the_same_for_all_seeds() -> None:
    class Constant(Net):
        def off(self, batch: Any) -> torch.Tensor:
            return super().off(batch) * 0 + batch[1]

    first, second = (fit(toy(Constant), recipe=ONE_STEP, seed=seed)[0] for seed in (0, 1))
    assert first.metrics == second.metrics
    assert first.test == second.test


def test_random_numbers_in_setup_depend_on_the_seed() -> None:
    class Drawing(Net):
        def setup(self, stage: str) -> None:
            self.numbers = torch.randn(3).tolist()

    networks: list[Any] = [fit(toy(Drawing), recipe=ONE_STEP, seed=seed)[0].network for seed in (0, 0, 1)]
    numbers = [network.numbers for network in networks]
    assert numbers[0] == numbers[1] != numbers[2]


def test_a_stop_before_the_checkpoint_gives_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoint, "due", lambda self: self.folder is not None)
    with pytest.raises(Kill):
        fit(toy(), tmp_path, die=3)
    run = Run(architecture=Toy.base, recipe=SMOKE, seed=0, folder=tmp_path, report=lambda *_: STOP)
    result = toy().fit(run)
    assert (result.steps, result.network) == (4, None)
    at_its_end = toy().fit(replace(run, report=lambda step, _: STOP if step == 8 else CONTINUE))
    assert at_its_end.steps == 8
    assert at_its_end.network is not None


def test_a_loss_that_is_not_finite_ends_a_training(tmp_path: Path) -> None:
    class Diverging(Net):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return super().training_step(batch, batch_idx) * (float("nan") if self.global_step >= 10 else 1)

    with pytest.raises(Diverged, match=r"\b12$"):
        fit(toy(Diverging), tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_checkpoint_of_other_weights_is_quarantined(tmp_path: Path) -> None:
    class OtherWeights(Net):
        def __init__(self, architecture: Any) -> None:
            super().__init__(architecture)
            self.other = nn.Linear(1, 1)

    toy().fit(Run(architecture=Toy.base, recipe=ONE_EPOCH, seed=0, folder=tmp_path, report=lambda *_: STOP))
    (checkpoint,) = tmp_path.iterdir()
    with warns("bad-file", path=str(checkpoint)):
        result = fit(toy(OtherWeights), tmp_path, recipe=ONE_EPOCH)
    assert result == fit(toy(OtherWeights), recipe=ONE_EPOCH)


def test_a_training_starts_from_given_weights_and_reports_them(plain: FitResult) -> None:
    _, curve = fit(toy(), recipe=ONE_EPOCH, start=weights_of(plain.network))  # type: ignore[arg-type]
    assert curve[0] == (0, plain.metrics)
    assert curve[1][0] == 4


def test_counting_needs_an_example_input() -> None:
    example = toy().example()
    assert isinstance(example, torch.Tensor)
    assert example.shape == (1, 4)

    class Bare(Net):
        def __init__(self, architecture: Any) -> None:
            super().__init__(architecture)
            self.example_input_array = None

    with raises("bad-plugin", task="toy-lightning", option="example_input_array"):
        toy(Bare).example()


def test_modules_that_cannot_be_trained_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unmeasured(Net):
        validation_step = L.LightningModule.validation_step

    with raises("bad-plugin", task="toy-lightning", option="validation_step"):
        toy(Unmeasured).prepare()
    identity = f"{nn.Identity.__module__}.Identity"
    with raises("bad-plugin", task="toy-lightning", option="module", type=identity):
        toy(nn.Identity).prepare()  # type: ignore[arg-type]
    monkeypatch.setattr(lightning_module, "world_size", lambda: 2)
    with raises("unsupported", task="toy-lightning", option="processes", value=2):
        toy().prepare()


def test_a_topology_that_the_module_ignores_is_refused() -> None:
    architecture = Toy.base.with_fields({"topology": "dca(k=2)"})
    with raises("unsupported", option="topology", value="dca(k=2)"):
        toy().build(architecture)


def test_a_recipe_without_an_end_is_refused() -> None:
    with raises("missing-value", max_epochs=-1, max_steps=-1):
        LightningRecipe()
    assert str(LightningRecipe(max_steps=5)) == "max_epochs -1, max_steps 5"


def test_fingerprint_depends_on_the_data() -> None:
    fingerprints = {toy(data_of=data).fingerprint(SMOKE) for data in (Points, NoisyPoints, StreamPoints, Two)}
    assert len(fingerprints) == 4


@pytest.mark.parametrize("kind", ["gathered gradients and a generator", "no length"])
def test_a_training_reports_its_progress(kind: str) -> None:
    progress: list[tuple[int, int]] = []
    result, _ = fit(TASKS[kind](), recipe=ONE_EPOCH, on_step=lambda *at: progress.append(at))
    assert {of for _, of in progress} <= {result.steps}
    assert progress == sorted(progress)
    assert progress[-1:] in ([], [(result.steps, result.steps)])
    assert progress or kind == "no length"
