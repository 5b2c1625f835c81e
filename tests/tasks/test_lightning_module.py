"""Somebody's LightningModule keeps the contract, whatever it does."""

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

from search_spaces.checkpoint import weights_of
from search_spaces.errors import Notice, UserError
from tasks import lightning_module
from tasks.base import Diverged, Fitted
from tasks.checkpoint import Checkpoint
from tasks.lightning_module import LightningRecipe, LightningTask
from tasks.run import CONTINUE, STOP, Decision, Run
from tasks.testing import check_task
from tests.tasks.lightning_toys import (
    ByHand,
    Eachwise,
    InAnotherProcess,
    Net,
    NoisyPoints,
    OfTwo,
    OwnGenerator,
    Points,
    Streamed,
    Toy,
    Two,
    toy,
)

SMOKE = Toy.presets["smoke"]

TASKS = {
    "a schedule that waits": lambda: toy(),
    "by hand": lambda: toy(ByHand),
    "gathered gradients": lambda: toy(accumulate_grad_batches=3),
    "draws in the data": lambda: toy(data_of=NoisyPoints),
    "draws in another process": lambda: toy(data_of=InAnotherProcess),
    "a generator of its own": lambda: toy(data_of=OwnGenerator),
    "no length": lambda: toy(data_of=Streamed, val_check_interval=4),
    "loaders of two lengths": lambda: toy(OfTwo, Two),
    "validation by batches": lambda: toy(check_val_every_n_epoch=None, val_check_interval=3),
}


class Killed(Exception):
    """As a process is, in the middle of something."""


def fit(
    task: LightningTask, folder: Path | None = None, *, die: int = 0, recipe: Any = SMOKE, **run: Any
) -> tuple[Fitted, list[Any]]:
    """Train, and die at a report if that is asked."""
    curve: list[Any] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append((step, dict(metrics)))
        if len(curve) == die:
            raise Killed
        return CONTINUE

    given = {"architecture": task.base, "recipe": recipe, "seed": 0, "report": report, "folder": folder} | run
    return task.fit(Run(**given)), curve


def test_it_keeps_the_contract() -> None:
    check_task(toy(Eachwise))


@pytest.mark.parametrize("kind", TASKS)
def test_a_training_that_was_killed_ends_as_one_that_was_not(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, curve = fit(TASKS[kind]())
    assert len(curve) >= 4
    # Kept between any two steps: it goes on from the one before the report that it dies at.
    monkeypatch.setattr(Checkpoint, "due", lambda self: self.folder is not None)
    for die in (2, 3):
        with pytest.raises(Killed):
            fit(TASKS[kind](), tmp_path, die=die)
    again, told = fit(TASKS[kind](), tmp_path)
    assert told == curve
    assert again == whole
    assert not any(tmp_path.iterdir())


def test_it_goes_on_in_the_middle_of_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    class Watched(Net):
        def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
            begun.append(batch_idx)

    monkeypatch.setattr(Checkpoint, "due", lambda self: self.folder is not None)
    with pytest.raises(Killed):
        fit(toy(Watched), tmp_path, die=1)
    assert begun == [0, 1, 2, 3]
    fit(toy(Watched), tmp_path, recipe=SMOKE)
    assert begun[4:9] == [3, 4, 5, 6, 7]


def test_stopped_early_by_a_callback_it_goes_on_to_the_same_end(tmp_path: Path) -> None:
    def task() -> LightningTask:
        return toy(callbacks=[EarlyStopping("val_loss", patience=1, min_delta=10.0)])

    whole, curve = fit(task())
    assert whole.steps < 24
    with pytest.raises(Killed):
        fit(task(), tmp_path, die=1)
    assert fit(task(), tmp_path) == (whole, curve)


def test_hooks_are_called() -> None:
    fitted, _ = fit(toy())
    called = fitted.network.called  # type: ignore[union-attr]
    assert [called.count(name) for name in ("backward", "train epoch")] == [24, 3]  # type: ignore[operator]
    assert called.count("validation epoch") == 8  # type: ignore[operator]  # before training, six on the way, at the end


def test_hyperparameters_are_not_in_the_checkpoint(tmp_path: Path) -> None:
    toy().fit(Run(architecture=Toy.base, recipe=SMOKE, seed=0, folder=tmp_path, report=lambda *_: STOP))
    (file,) = tmp_path.iterdir()
    kept = torch.load(file, weights_only=True)["state"]["training"]
    assert "state_dict" in kept
    assert "hyper_parameters" not in kept


class Asked(KeyboardInterrupt):
    """Somebody wants an end."""


def meanings() -> tuple[Any, Any]:
    return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)


def test_ctrl_c_is_ctrl_c() -> None:
    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        raise Asked

    class Early(Points):
        def setup(self, stage: str) -> None:
            super().setup(stage)
            if self.trainer is not None:  # not while its fingerprint is made
                raise Asked

    before = meanings()
    for task in (toy(), toy(data_of=Early)):
        with pytest.raises(Asked):
            task.fit(Run(architecture=Toy.base, recipe=SMOKE, seed=0, report=report))
        assert meanings() == before


def test_signals_mean_what_they_meant_while_it_trains() -> None:
    meant = []

    class Watching(Net):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            meant.append(meanings())
            return super().training_step(batch, batch_idx)

    before = meanings()
    fit(toy(Watching, num_sanity_val_steps=0))
    assert set(meant) == {before}


def test_a_metric_that_is_not_logged_is_told_before_any_training() -> None:
    class Other(Net):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val/mse", self.off(batch).mean())

        def training_step(self, batch: Any, batch_idx: int) -> None:
            raise AssertionError("it has trained")

    with pytest.raises(UserError, match="measures 'loss', and its validation logged no 'val_loss', but val/mse"):
        fit(toy(Other))


def test_a_metric_may_be_logged_by_another_name() -> None:
    class Other(Net):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val/loss", self.off(batch).mean())

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    task = toy(Other)
    type(task).logged_as = ("val/{}", "test_{}")
    assert fit(task)[0].metrics["loss"] > 0


def test_standard_errors_are_those_of_examples_or_those_logged() -> None:
    fitted, curve = fit(toy(Eachwise, limit_val_batches=2))
    assert fitted.metrics["loss_se"] > 0
    assert fitted.test["loss_se"] == 0.25
    assert all("loss_se" in metrics for _, metrics in curve)
    assert set(fit(toy())[0].metrics) == {"loss"}


def test_the_standard_error_is_that_of_all_examples() -> None:
    class Known(Eachwise):
        def off(self, batch: Any) -> torch.Tensor:
            return super().off(batch) * 0 + batch[1]

    task = toy(Known)
    fitted, _ = fit(task)
    with lightning_module.seeded(0):
        data = Points()
    with lightning_module.seeded(0):
        data.setup("validate")
    y = torch.stack([example[1] for example in data.val]).double()
    assert fitted.metrics["loss"] == pytest.approx(y.mean().item())
    assert fitted.metrics["loss_se"] == pytest.approx((y.var(correction=0) / 20).sqrt().item())


def test_a_module_without_a_test_has_none() -> None:
    class Untested(Net):
        test_step = L.LightningModule.test_step

    assert fit(toy(Untested))[0].test == {}


def test_the_data_is_cut_alike_for_all_seeds() -> None:
    class Constant(Net):
        def off(self, batch: Any) -> torch.Tensor:
            return super().off(batch) * 0 + batch[1]

    one, other = (fit(toy(Constant), seed=seed)[0] for seed in (0, 1))
    assert one.metrics == other.metrics
    assert one.test == other.test


def test_what_a_module_draws_in_setup_is_of_the_seed() -> None:
    class Drawing(Net):
        def setup(self, stage: str) -> None:
            self.drawn = torch.randn(3).tolist()

    drawn = [fit(toy(Drawing), seed=seed)[0].network.drawn for seed in (0, 0, 1)]  # type: ignore[union-attr]
    assert drawn[0] == drawn[1] != drawn[2]


def test_of_a_point_before_the_checkpoint_there_is_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoint, "due", lambda self: self.folder is not None)
    with pytest.raises(Killed):
        fit(toy(), tmp_path, die=3)
    run = Run(architecture=Toy.base, recipe=SMOKE, seed=0, folder=tmp_path, report=lambda *_: STOP)
    stopped = toy().fit(run)
    assert (stopped.steps, stopped.network) == (4, None)
    at_its_end = toy().fit(replace(run, report=lambda step, _: STOP if step == 8 else CONTINUE))
    assert at_its_end.steps == 8
    assert at_its_end.network is not None


def test_a_loss_that_is_not_finite_ends_it(tmp_path: Path) -> None:
    class Diverging(Net):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return super().training_step(batch, batch_idx) * (float("nan") if self.global_step >= 10 else 1)

    with pytest.raises(Diverged, match="at step"):
        fit(toy(Diverging), tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_checkpoint_of_other_weights_is_set_aside(tmp_path: Path) -> None:
    class Renamed(Net):
        def __init__(self, architecture: Any) -> None:
            super().__init__(architecture)
            self.other = nn.Linear(1, 1)

    toy().fit(Run(architecture=Toy.base, recipe=SMOKE, seed=0, folder=tmp_path, report=lambda *_: STOP))
    with pytest.warns(Notice, match="it does not fit"):
        found = fit(toy(Renamed), tmp_path)
    assert found == fit(toy(Renamed))


def test_a_training_begins_with_given_weights_and_reports_them() -> None:
    start = weights_of(fit(toy())[0].network)  # type: ignore[arg-type]
    _, curve = fit(toy(), start=start)
    assert curve[0] == (0, fit(toy())[0].metrics)
    assert curve[1][0] == 4


def test_it_is_counted_by_its_forward_and_needs_an_example() -> None:
    example = toy().example()
    assert isinstance(example, torch.Tensor)
    assert example.shape == (1, 4)

    class Bare(Net):
        def __init__(self, architecture: Any) -> None:
            super().__init__(architecture)
            self.example_input_array = None

    with pytest.raises(UserError, match="needs inputs of one example"):
        toy(Bare).example()


def test_what_cannot_be_trained_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unmeasured(Net):
        validation_step = L.LightningModule.validation_step

    with pytest.raises(UserError, match="Unmeasured must have validation_step"):
        toy(Unmeasured).prepare()
    with pytest.raises(UserError, match=r"must give a lightning.pytorch.LightningModule, got torch.*Identity"):
        toy(nn.Identity).prepare()  # type: ignore[arg-type]
    monkeypatch.setattr(lightning_module, "processes", lambda: 2)
    with pytest.raises(UserError, match="by one process, got 2"):
        toy().prepare()


def test_a_topology_that_it_does_not_have_is_refused() -> None:
    architecture = Toy.base.changed({"topology": "dca(k=2)"})
    with pytest.raises(UserError, match=r"topology must be resnet .* got dca\(k=2\)"):
        toy().build(architecture)


def test_a_recipe_has_an_end() -> None:
    with pytest.raises(UserError, match="max_epochs or max_steps, got -1 and -1"):
        LightningRecipe()
    assert str(LightningRecipe(max_steps=5)) == "max_epochs -1, max_steps 5"


def test_other_data_has_another_fingerprint() -> None:
    found = {toy(data_of=data).fingerprint(SMOKE) for data in (Points, NoisyPoints, Streamed, Two)}
    assert len(found) == 4


@pytest.mark.parametrize("kind", ["gathered gradients", "no length"])
def test_a_training_says_how_far_it_is(kind: str) -> None:
    said: list[tuple[int, int]] = []
    fitted, _ = fit(TASKS[kind](), advanced=lambda *at: said.append(at))
    assert {of for _, of in said} <= {fitted.steps}
    assert said == sorted(said)
    assert said[-1:] in ([], [(fitted.steps, fitted.steps)])
    assert said or kind == "no length"
