"""The imagenet-dit task: data, metrics and samples."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from expect import raises
from search_spaces.models.dit import ImageSpec
from tasks.data.splits import derived_seed
from tasks.diffusion import imagenet_dit
from tasks.diffusion.autoencoder import autoencoder, decode_latents
from tasks.diffusion.frechet import frechet, normal
from tasks.diffusion.imagenet_dit import ImageNetDiT
from tasks.diffusion.inception import extract_features, real_pictures
from tasks.diffusion.sampling import balanced_classes, draw
from tasks.run import Run

SMOKE = replace(ImageNetDiT.presets["smoke"], samples=12)
TINY = replace(ImageNetDiT.base, depth=1, width=16, heads=2, head_dim=8, hidden=16)


def test_data_set_the_shape_and_number_of_classes(latent_folder: Path) -> None:
    assert ImageNetDiT().pictures == ImageSpec((4, 32, 32), 2, 1000)
    assert ImageNetDiT(latent_folder).pictures == ImageSpec((4, 4, 4), 2, 3)


def test_samples_are_decoded_and_compared_with_the_reference(latent_folder: Path) -> None:
    task = ImageNetDiT(latent_folder)
    task.splits_for(SMOKE)
    torch.manual_seed(0)
    network = task.build(TINY)
    metrics = task.measure_network(lambda inputs: network(*inputs), "test", SMOKE, torch.device("cpu"))

    classes = balanced_classes(3, 12)
    latents = draw(
        lambda inputs: network(*inputs),
        task.pictures,
        classes,
        SMOKE,
        derived_seed(0, "samples", "test"),
        clip=False,
    )
    pictures = decode_latents(autoencoder(latent_folder / "vae"), latents)
    assert pictures.shape == (12, 3, 32, 32)
    inception = imagenet_dit.inception(None)  # the tiny Inception
    features = extract_features(inception, [pictures], torch.device("cpu"))
    real = real_pictures(latent_folder / "reference.npz", inception, torch.device("cpu"))
    assert metrics["fid"] == pytest.approx(frechet(normal(features.pooled), normal(real.pooled)), rel=1e-6)
    assert metrics["sfid"] == pytest.approx(frechet(normal(features.spatial), real.sfid), rel=1e-6)
    assert set(metrics) == {
        "fid", "sfid", "inception_score", "inception_score_se", "precision", "precision_se", "recall", "recall_se"
    }  # fmt: skip


def test_training_measures_every_metric(latent_folder: Path) -> None:
    result = ImageNetDiT(latent_folder).fit(Run(architecture=TINY, recipe=SMOKE, seed=0))
    assert {metric.name for metric in ImageNetDiT.metrics} <= set(result.metrics)
    assert result.metrics["fid"] > 0


@pytest.mark.parametrize("name", ["vae", "reference.npz"])
def test_refuses_data_without_what_measures_samples(name: str, latent_folder: Path) -> None:
    (latent_folder / name).rename(latent_folder / "elsewhere")
    task = ImageNetDiT(latent_folder)
    with raises("missing-data", path=str(latent_folder), value=name):
        task.fingerprint(SMOKE)
    result = task.fit(Run(architecture=TINY, recipe=replace(SMOKE, samples=0), seed=0))
    assert set(result.metrics) == {"loss", "loss_se"}


def test_asks_for_data() -> None:
    with raises("missing-data", option="--data", task="imagenet-dit"):
        ImageNetDiT().load()


def test_refuses_latents_that_do_not_divide_into_patches(latent_folder: Path) -> None:
    import numpy as np

    for file in (latent_folder / "imagenet32_features").iterdir():
        np.save(file, np.zeros((1, 4, 5, 4), np.float32))
    with raises("bad-data", path=str(latent_folder), value=(4, 5, 4), step=2):
        ImageNetDiT(latent_folder).example()


def test_renders_a_grid_of_pictures(latent_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    task, file = ImageNetDiT(latent_folder), tmp_path_factory.mktemp("drawn") / "grid.png"
    task.render(None, file)
    assert not file.exists()
    task.render(task.build(TINY), file)
    assert Image.open(file).size == (8 * 66 + 2, 4 * 66 + 2)
