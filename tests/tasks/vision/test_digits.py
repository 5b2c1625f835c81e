"""The digits task: split, network and training."""

from dataclasses import replace

import pytest
import torch

from tasks.run import Run
from tasks.vision.digits import DigitsViT

TASK = DigitsViT()


def test_the_split_does_not_change() -> None:
    splits = TASK.load()
    assert [len(part[0]) for part in (splits.train, splits.validation, splits.test)] == [1077, 360, 360]
    assert splits.fingerprint == "07ec2a2be140"


def test_the_classifier_reads_the_mean_of_all_tokens() -> None:
    torch.manual_seed(0)
    network = TASK.build(TASK.base).eval()
    images = torch.rand(3, 1, 8, 8)
    tokens = network.get_submodule("stack")(*network.get_submodule("embedding")(images))
    assert tokens.shape == (3, 17, 32)
    scores = network.get_submodule("head")(sum(tokens[:, n] for n in range(17)) / 17)
    assert torch.allclose(network(images), scores, atol=1e-6)


def test_linear_maps_are_initialized_as_in_the_original_vit() -> None:
    torch.manual_seed(0)
    weight = TASK.build(TASK.base).get_parameter("stack.layers.1.up.weight")
    bound = (6 / (32 + 64)) ** 0.5
    assert 0.9 * bound < weight.abs().max() <= bound


def test_training_images_are_augmented_and_measured_ones_are_not() -> None:
    splits = TASK.load()
    recipe = TASK.presets["smoke"]
    (images, labels), _ = next(splits.training_batches(recipe, 0, (), torch.device("cpu")))
    originals = splits.encode(splits.train[0]).flatten(1)
    distances = torch.cdist(images.flatten(1), originals)
    assert distances.min(dim=1).values.min() > 0.1
    assert (splits.train[1][distances.argmin(dim=1)] == labels).float().mean() > 0.9
    validation_images, _ = next(splits.evaluation_batches("validation", recipe, torch.device("cpu")))
    assert torch.equal(validation_images, splits.encode(splits.validation[0][: len(validation_images)]))


def test_the_smoke_preset_learns() -> None:
    recipe = replace(TASK.presets["smoke"], reports=1)
    result = TASK.fit(Run(architecture=replace(TASK.base, depth=1), recipe=recipe, seed=0))
    assert result.metrics["accuracy"] > 0.85
    assert result.test["accuracy"] > 0.85


def test_a_recipe_may_recompute_mixing() -> None:
    recipe = replace(TASK.presets["smoke"], recompute_mixing=True)
    run = Run(architecture=replace(TASK.base, topology="hyper"), recipe=recipe, seed=0)
    training = TASK.training(run, recipe, TASK.splits)
    assert training.network.get_submodule("stack").recompute_mixing


def test_the_baseline_is_measured_on_the_same_splits() -> None:
    (columns,) = TASK.baselines(TASK.presets["proxy"]).values()
    assert set(columns) == {"accuracy", "accuracy_se", "test_accuracy", "test_accuracy_se"}
    for prefix in ("", "test_"):
        share = columns[f"{prefix}accuracy"]
        assert 0.9 < share < 0.99
        assert columns[f"{prefix}accuracy_se"] == pytest.approx((share * (1 - share) / 360) ** 0.5)
        assert (share * 360) == pytest.approx(round(share * 360))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{}, {"depth": 1, "heads": 1, "head_dim": 4}])
def test_proxy_beats_the_linear_model(shape: dict[str, int]) -> None:
    (linear,) = TASK.baselines(TASK.presets["proxy"]).values()
    fits = [
        TASK.fit(Run(architecture=replace(TASK.base, **shape), recipe=TASK.presets["proxy"], seed=seed))
        for seed in range(3)
    ]
    validation, test = (
        sum(getattr(result, part)["accuracy"] for result in fits) / len(fits) for part in ("metrics", "test")
    )
    assert validation + test > linear["accuracy"] + linear["test_accuracy"]
