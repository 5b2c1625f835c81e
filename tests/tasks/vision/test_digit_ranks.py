"""The digit-ranks task: grids, answers and standard errors."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from tasks.run import Run
from tasks.vision.digit_ranks import DigitRanksViT, clustered_standard_error, rank_digits
from tasks.vision.digits import DigitsViT

TASK = DigitRanksViT()
CPU = torch.device("cpu")


def test_a_rank_is_the_number_of_smaller_digits() -> None:
    for digits in product(range(4), repeat=4):
        assert rank_digits(torch.tensor(digits)).tolist() == [sum(other < d for other in digits) for d in digits]


@pytest.mark.parametrize("part", ["validation", "test"])
def test_measured_grids_show_each_of_their_scans_eight_times(part: str) -> None:
    images, answers = getattr(TASK.load(), part)
    scans, digits = getattr(DigitsViT().load(), part)
    assert images.shape == (720, 1, 16, 16)
    assert torch.bincount(answers["scans"].flatten()).tolist() == [8] * 360
    for grid, numbers, ranks in zip(images[::60], answers["scans"][::60], answers["ranks"][::60], strict=True):
        assert len(set(numbers.tolist())) == 4
        quarters = [grid[:, :8, :8], grid[:, :8, 8:], grid[:, 8:, :8], grid[:, 8:, 8:]]
        assert all(torch.equal(quarter, scans[index]) for quarter, index in zip(quarters, numbers, strict=True))
        assert ranks.tolist() == rank_digits(digits[numbers]).tolist()


def test_the_grids_do_not_change() -> None:
    assert TASK.load().fingerprint == "e85e47538980"


def test_training_puts_each_scan_of_a_batch_into_four_new_grids() -> None:
    recipe = replace(TASK.presets["smoke"], degrees=0.0, shift=0.0, scale=0.0)
    batches = TASK.load().training_batches(recipe, 0, (), CPU)
    (images, answers), _ = next(batches)
    assert images.shape == (64, 1, 16, 16)
    quarters = images.view(64, 1, 2, 8, 2, 8).permute(0, 2, 4, 1, 3, 5).flatten(0, 2)
    kinds, times = quarters.flatten(1).unique(dim=0, return_counts=True)
    assert len(kinds) == 64
    assert set(times.tolist()) == {4}
    assert not torch.equal(next(batches)[0][0], images)
    assert answers["ranks"].shape == (64, 4)


def test_answers_are_read_from_the_tokens_of_their_scan() -> None:
    torch.manual_seed(0)
    network = TASK.build(TASK.base).eval()
    images = torch.rand(2, 1, 16, 16)
    tokens = network.get_submodule("stack")(*network.get_submodule("embedding")(images))
    assert tokens.shape == (2, 17, 32)
    of_scan = [(1, 2, 5, 6), (3, 4, 7, 8), (9, 10, 13, 14), (11, 12, 15, 16)]  # after the class token, row by row
    means = torch.stack([sum(tokens[:, index] for index in group) / 4 for group in of_scan], dim=1)
    assert torch.allclose(network(images), network.get_submodule("head")(means), atol=1e-6)


def test_the_standard_error_is_that_of_drawing_other_scans() -> None:
    random = np.random.default_rng(0)
    groups = torch.as_tensor(np.concatenate([random.permutation(200) for _ in range(8)]).reshape(400, 4))
    means, errors = [], []
    for _ in range(400):
        quality = torch.as_tensor(random.normal(size=200))
        values = quality[groups].mean(dim=1) + 0.1 * torch.as_tensor(random.normal(size=400))
        means.append(values.mean().item())
        errors.append(clustered_standard_error(values, groups))
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)
    alone = torch.arange(50)[:, None]
    values = torch.as_tensor(random.normal(size=50))
    assert clustered_standard_error(values, alone) == pytest.approx((values.var(correction=0) / 50).sqrt().item())


def test_metrics_are_means_over_the_answers_of_a_grid() -> None:
    outputs = torch.zeros(2, 4, 4)
    outputs[0, :, 1] = 9.0
    targets = {"ranks": torch.tensor([[1, 1, 0, 1], [0, 0, 0, 0]]), "scans": torch.arange(8).view(2, 4)}
    measurements = TASK.measure(outputs, targets)
    assert measurements["accuracy"].tolist() == [0.75, 1.0]
    assert measurements["loss"][1].item() == pytest.approx(np.log(4))
    summary = TASK.summary(measurements)
    assert summary["accuracy"] == pytest.approx(0.875)
    assert set(summary) == {"accuracy", "accuracy_se", "loss", "loss_se"}


def test_a_short_training_learns_and_there_is_a_baseline() -> None:
    recipe = replace(TASK.presets["smoke"], epochs=5)
    result = TASK.fit(Run(architecture=replace(TASK.base, depth=2), recipe=recipe, seed=0))
    assert result.metrics["accuracy"] > 0.5  # 0.30 for the most common rank
    assert 0.003 < result.metrics["accuracy_se"] < 0.03
    by_grid, by_scan = TASK.baselines(TASK.presets["smoke"]).values()
    assert 0.25 < by_grid["accuracy"] < 0.6
    assert 0.85 < by_scan["accuracy"] < 1
    for columns in (by_grid, by_scan):
        assert 0 < columns["test_accuracy_se"] < 0.03
