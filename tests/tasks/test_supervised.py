"""Training: what it computes, how it ends, and how it goes on after it was interrupted."""

import pickle
import signal
import warnings
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tasks.training
from search_spaces import Architecture
from search_spaces.topologies.decay import split_by_decay
from tasks.base import Diverged, Fitted
from tasks.classification import ClassificationTask
from tasks.load import load_task
from tasks.recipe import Recipe
from tasks.splits import Batch, TensorSplits

MOONS = load_task(f"{Path(__file__).parent}/moons.py:Moons")
CPU = torch.device("cpu")
SHAPE = Architecture(depth=1, width=8, hidden=8)


def examples(count: int, seed: int) -> Batch:
    inputs = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return inputs, (inputs.prod(dim=1) > 0).long()


class Corners(ClassificationTask):
    """In which pair of quadrants does a point lie? By a perceptron with dropout."""

    name = "corners"
    version = 1
    base = SHAPE
    presets = {  # noqa: RUF012
        "smoke": Recipe(steps=30, batch=16, lr=0.01, accumulate=2),
        "whole": Recipe(steps=30, batch=16, lr=0.01),
        "wild": Recipe(steps=30, batch=16, lr=1e30),
    }

    def load(self) -> TensorSplits:
        """Draw the points."""
        return TensorSplits(examples(100, 1), examples(50, 2), examples(50, 3))

    def build(self, architecture: Architecture) -> nn.Module:
        """Points [B, 2] to class scores [B, 2]."""
        return nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 2))

    def example(self) -> tuple[Tensor, ...]:
        """One point."""
        return (torch.zeros(1, 2),)


def silent(step: int, metrics: Mapping[str, float]) -> None:
    """Take no notice."""


def test_training_is_the_loop_that_anybody_would_write() -> None:
    recipe = MOONS.presets["smoke"]
    splits = MOONS.load()
    torch.manual_seed(5)
    network = MOONS.build(MOONS.base)
    decayed, exempt = split_by_decay(network)
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": exempt, "weight_decay": 0.0}],
        betas=recipe.betas,
        fused=True,
    )
    batches = splits.training(recipe, 5, (), CPU)
    for step in range(40):
        (inputs, labels), _ = next(batches)
        optimizer.zero_grad()
        F.cross_entropy(network(inputs), labels).backward()
        nn.utils.clip_grad_norm_(decayed + exempt, recipe.clip)
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate(step, 40)
        optimizer.step()
    network.eval()
    with torch.no_grad():
        outputs = [(network(inputs), labels) for inputs, labels in splits.measured("test", recipe, CPU)]
    right = [(scores.argmax(dim=1) == labels).double() for scores, labels in outputs]
    losses = [F.cross_entropy(scores, labels, reduction="none").double() for scores, labels in outputs]
    fitted = MOONS.fit(MOONS.base, "smoke", 5, None, silent)
    assert fitted.steps == 40
    assert fitted.test["accuracy"] == torch.cat(right).mean().item()
    assert fitted.test["loss"] == torch.cat(losses).mean().item()


def test_an_accumulated_batch_is_the_batch() -> None:
    class Still(Corners):
        def build(self, architecture: Architecture) -> nn.Module:
            return nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Linear(8, 2))

        def load(self) -> TensorSplits:
            inputs, labels = examples(8, 1)  # whichever way it is dealt, a batch of 16 is all of them, twice
            return TensorSplits((inputs, labels), examples(50, 2), examples(50, 3))

    cut, whole = (Still().fit(SHAPE, preset, 0, None, silent) for preset in ("smoke", "whole"))
    assert cut.steps == whole.steps == 30
    assert cut.test["loss"] == pytest.approx(whole.test["loss"], rel=1e-4)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save a checkpoint after every step."""
    monkeypatch.setattr(tasks.training, "_CHECKPOINT_S", -1.0)


class Interrupted(Exception):
    """A machine went down."""


def fit_until(stop: int, folder: Path, seed: int = 0) -> None:
    """Train to the first report at or after a step, and there be interrupted."""

    def report(step: int, metrics: Mapping[str, float]) -> None:
        if step >= stop:
            raise Interrupted

    with pytest.raises(Interrupted):
        Corners().fit(SHAPE, "smoke", seed, folder, report)


def told(folder: Path | None, seed: int = 0) -> tuple[Fitted, list[tuple[int, dict[str, float]]]]:
    curve: list[tuple[int, dict[str, float]]] = []
    fitted = Corners().fit(SHAPE, "smoke", seed, folder, lambda step, metrics: curve.append((step, dict(metrics))))
    return fitted, curve


@pytest.mark.usefixtures("eager")
def test_an_interrupted_training_ends_as_one_that_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight = told(None)
    fit_until(12, tmp_path)
    fit_until(18, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["last.ckpt"]
    starts = []
    training = TensorSplits.training
    monkeypatch.setattr(
        TensorSplits,
        "training",
        lambda self, recipe, seed, start, device: starts.append(start) or training(self, recipe, seed, start, device),
    )
    assert told(tmp_path) == straight
    assert starts == [(34,)]  # two passes a step, and the 18th step had not been saved
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("eager")
def test_a_checkpoint_of_another_run_is_not_continued(tmp_path: Path) -> None:
    fit_until(12, tmp_path, seed=1)
    assert told(tmp_path) == told(None)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("damage", ["cut", "empty", "program"])
def test_a_checkpoint_that_cannot_be_read_is_not_continued(tmp_path: Path, damage: str) -> None:
    fit_until(12, tmp_path)
    file = tmp_path / "last.ckpt"
    program = pickle.dumps(Program(tmp_path / "executed"))
    file.write_bytes({"cut": file.read_bytes()[:3000], "empty": b"", "program": program}[damage])
    with pytest.warns(UserWarning, match="cannot be read"):
        found = told(tmp_path)
    assert found == told(None)
    assert not (tmp_path / "executed").exists()


class Program:
    """What a pickle can hold: whoever opens it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return Path.mkdir, (self.folder,)


def test_a_loss_that_is_not_finite_ends_the_training_early() -> None:
    steps: list[int] = []
    with pytest.raises(Diverged, match=r"not finite, at step \d+ of 30"):
        Corners().fit(SHAPE, "wild", 0, None, lambda step, metrics: steps.append(step))
    assert steps == []


def test_an_interrupt_is_an_interrupt() -> None:
    def report(step: int, metrics: Mapping[str, float]) -> None:
        raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        Corners().fit(SHAPE, "smoke", 0, None, report)
    assert signal.getsignal(signal.SIGINT) is handler


def test_nothing_is_said_on_the_terminal(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Corners().fit(SHAPE, "smoke", 0, tmp_path, silent)
    assert capfd.readouterr() == ("", "")
    assert [str(warning.message) for warning in said] == []


def test_test_examples_do_not_change_the_training() -> None:
    class Other(Corners):
        def load(self) -> TensorSplits:
            return TensorSplits(examples(100, 1), examples(50, 2), examples(20, 4))

    one, two = (task.fit(SHAPE, "smoke", 0, None, silent) for task in (Corners(), Other()))
    assert one.validation == two.validation
    assert one.test != two.test
