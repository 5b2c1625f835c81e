"""The digits-dit task: training, measurement and samples."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import nas
from expect import raises
from tasks.diffusion.digit_features import digits
from tasks.diffusion.digits_dit import DigitsDiT
from tasks.diffusion.noise import add_noise
from tasks.run import Run
from tasks.vision.digits import DigitsViT

pytest.importorskip("diffusers")

TASK = DigitsDiT()
SMOKE = replace(TASK.presets["smoke"], steps=4, reports=1, samples=20, sample_steps=2)
TINY = replace(TASK.base, depth=1, width=16, heads=2, head_dim=8, hidden=16)


def test_training_adds_noise_and_drops_some_classes() -> None:
    splits = TASK.load()
    batches = splits.training_batches(replace(SMOKE, batch=64, class_dropout=0.25), 0, (), torch.device("cpu"))
    no_op = 0
    for _, ((noisy, times, classes), targets) in zip(range(10), (batch for batch, _ in batches), strict=False):
        torch.testing.assert_close(noisy, add_noise(targets["start"], targets["noise"], times))
        assert times.min() >= 0
        assert times.max() < 1000
        assert targets["start"].min() == -1
        assert targets["start"].max() == 1
        no_op += int((classes == 10).sum())
    assert 110 < no_op < 210


def test_every_held_out_scan_is_measured_at_eight_evenly_spread_times() -> None:
    for part in ("validation", "test"):
        (noisy, times, classes), targets = getattr(TASK.load(), part)
        scans, labels = getattr(DigitsViT().load(), part)
        assert torch.bincount(targets["picture"]).tolist() == [8] * 360
        for picture in (0, 100, 359):
            rows = targets["picture"] == picture
            assert (times[rows] // 125).tolist() == [*range(8)]
            assert set(classes[rows].tolist()) == {labels[picture].item()}
            start = (2 * scans[picture] - 1).expand(8, -1, -1, -1)
            torch.testing.assert_close(noisy[rows], add_noise(start, targets["noise"][rows], times[rows]))


def test_standard_error_is_over_scans() -> None:
    metrics = TASK.summary({"loss": torch.tensor([1.0, 2, 3, 6]), "picture": torch.tensor([0, 1, 0, 1])})
    assert metrics["loss"] == 3
    assert metrics["loss_se"] == pytest.approx(((2 - 3) ** 2 + (4 - 3) ** 2) ** 0.5 / 2)


def test_measures_and_keeps_the_averaged_weights() -> None:
    fast = replace(SMOKE, measured=40)
    recipes = replace(fast, ema=0.5, samples=0), replace(fast, ema=0.0), replace(fast, ema=0.0, samples=0)
    torch.manual_seed(0)
    average, last, without_samples = (TASK.fit(Run(architecture=TINY, recipe=recipe, seed=0)) for recipe in recipes)
    assert average.metrics["loss"] != last.metrics["loss"]
    name, weights = "stack.layers.0.layer.out.weight", []
    for result in (average, last, without_samples):
        assert result.network is not None
        weights.append(result.network.get_parameter(name))
    assert not torch.equal(weights[0], weights[1])
    assert torch.equal(weights[1], weights[2])


def test_without_samples_the_loss_is_the_only_metric(tmp_path: Path) -> None:
    quick = {"samples": 0, "steps": 2, "reports": 1}
    row = nas.evaluate(
        "digits-dit", preset="smoke", settings=quick, arch="depth=1,width=16", storage=f"sqlite:///{tmp_path}/s.db"
    )
    assert (row.status, set(row.metrics), row.directions) == ("complete", {"loss", "loss_se"}, {"loss": "min"})
    assert TASK.measure_network(lambda _: None, "test", replace(SMOKE, samples=0), torch.device("cpu")) == {}


def test_the_classifier_recognises_digits() -> None:
    images, labels = DigitsViT().load().test
    assert (digits(images) == labels.numpy()).mean() > 0.95


def test_renders_a_grid_of_digits(tmp_path: Path) -> None:
    from PIL import Image

    network = TASK.build(TINY)
    TASK.render(None, tmp_path / "grid.png")
    assert not list(tmp_path.iterdir())
    quick = DigitsDiT()
    quick.presets = {**TASK.presets, "pictures": replace(TASK.presets["pictures"], sample_steps=2)}
    quick.render(network, tmp_path / "grid.png")
    assert Image.open(tmp_path / "grid.png").size == (10 * 54 + 6, 8 * 54 + 6)


def test_refuses_a_grid_that_cannot_be_written_before_training(tmp_path: Path) -> None:
    with raises("unsupported", option="--render", path=str(tmp_path / "grid.gif"), choices=(".png",)):
        TASK.render(None, tmp_path / "grid.gif")
    with raises("unwritable", option="--render", folder=str(tmp_path / "nowhere")):
        TASK.render(None, tmp_path / "nowhere" / "grid.png")
