"""Folders of latents: splits, noise and errors."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from expect import raises
from search_spaces.support.errors import Kind
from search_spaces.support.rank import RankInfo
from tasks.data.batches import Batch
from tasks.diffusion.imagenet_dit import ImageNetDiT
from tasks.diffusion.latents import LatentSplits, latent_splits
from tasks.diffusion.noise import add_noise
from tasks.diffusion.task import with_noise

CPU = torch.device("cpu")
RECIPE = replace(ImageNetDiT.presets["smoke"], batch=4, measured=0)


def splits(folder: Path) -> LatentSplits:
    return latent_splits(folder, with_noise, ())


def start_images(batches: Iterator[Batch]) -> list[bytes]:
    """The pictures without their noise, which is known."""
    pairs = []
    for (noisy, times, classes), targets in batches:
        zeros = torch.zeros_like(noisy)
        start = (noisy - add_noise(zeros, targets["noise"], times)) / add_noise(torch.ones_like(noisy), zeros, times)
        pairs += [(x.numpy().round(2).tobytes(), label) for x, label in zip(start, classes.tolist(), strict=True)]
    return pairs


def test_every_picture_is_in_one_split_with_its_label(latent_folder: Path) -> None:
    folder = latent_folder / "imagenet32_features"
    label_of = {np.load(folder / f"{n}.npy")[0].round(2).tobytes(): n % 3 for n in range(24)}
    data = splits(latent_folder)
    assert (data.num_examples, data.held_out, len(data.test.images)) == (20, 2, 2)
    assert (data.classes, data.shape) == (3, (4, 4, 4))
    training = data.training_batches(replace(RECIPE, class_dropout=0.0), 0, (), CPU)
    learned = {}
    for _, ((_, _, classes), targets) in zip(range(5), (batch for batch, _ in training), strict=False):
        starts = (image.numpy().round(2).tobytes() for image in targets["start"])
        learned |= dict(zip(starts, classes.tolist(), strict=True))
    assert learned.items() <= label_of.items()
    assert len(learned) == 20
    labels = [label for _, label in start_images(data.evaluation_batches("validation", RECIPE, CPU))]
    assert len(labels) == 2


def test_held_out_pictures_always_get_the_same_noise(latent_folder: Path) -> None:
    for part in ("validation", "test"):
        first, second = (next(splits(latent_folder).evaluation_batches(part, RECIPE, CPU)) for _ in range(2))
        for a, b in zip((*first[0], *first[1].values()), (*second[0], *second[1].values()), strict=True):
            assert torch.equal(a, b)
        assert len({noise.numpy().tobytes() for noise in first[1]["noise"]}) == 2, "each has noise of its own"
        assert first[0][1].unique().numel() == 2


def test_processes_share_the_measurement(latent_folder: Path) -> None:
    for number in range(24, 90):
        for kind in ("features", "labels"):
            folder = latent_folder / f"imagenet32_{kind}"
            (folder / f"{number}.npy").write_bytes((folder / f"{number % 24}.npy").read_bytes())
    data, recipe = splits(latent_folder), replace(RECIPE, batch=2)
    alone = [*data.evaluation_batches("test", recipe, CPU)]
    shares = [batch for rank in range(2) for batch in data.evaluation_batches("test", recipe, CPU, RankInfo(rank, 2))]
    pictures = torch.cat([targets["picture"] for _, targets in shares])
    assert sorted(pictures.tolist()) == [*range(5)]
    together = torch.cat([inputs[0] for inputs, _ in shares])[pictures.argsort()]
    assert torch.equal(together, torch.cat([inputs[0] for inputs, _ in alone]))
    assert torch.cat([targets["picture"] for _, targets in alone]).tolist() == [*range(5)]


def test_training_uses_any_view_and_measurement_the_first(latent_folder: Path) -> None:
    for number in range(24):
        views = np.stack([np.full((4, 4, 4), float(view), np.float32) for view in range(3)])
        np.save(latent_folder / "imagenet32_features" / f"{number}.npy", views)
    data = splits(latent_folder)
    training = data.training_batches(RECIPE, 0, (), CPU)
    starts = torch.cat([next(training)[0][1]["start"] for _ in range(20)])
    assert sorted(torch.bincount(starts.mean((1, 2, 3)).long()).clamp(max=15).tolist()) == [15, 15, 15]
    assert {image for image, _ in start_images(data.evaluation_batches("test", RECIPE, CPU))} == {
        np.zeros((4, 4, 4), "f4").tobytes()
    }


def test_fingerprint_depends_on_the_files(latent_folder: Path) -> None:
    before = splits(latent_folder).fingerprint
    beside = latent_splits(latent_folder, with_noise, [latent_folder / "reference.npz"]).fingerprint
    np.save(latent_folder / "imagenet32_labels" / "5.npy", np.array([0]))
    assert len({before, beside, splits(latent_folder).fingerprint}) == 3


@pytest.mark.parametrize(
    ("file", "array", "kind", "fields"),
    [
        ("features/3.npy", np.zeros((4, 4, 4), np.float32), "bad-data", {"dtype": "float32", "shape": (4, 4, 4)}),
        ("features/3.npy", np.zeros((1, 4, 4, 4), np.int64), "bad-data", {"dtype": "int64", "shape": (1, 4, 4, 4)}),
        ("labels/3.npy", np.array([1.5]), "bad-data", {"dtype": "float64", "shape": (1,)}),
        ("labels/3.npy", np.array([-1]), "bad-data", {"dtype": "int64", "shape": (1,)}),
        ("labels/3.npy", np.array([1, 2]), "bad-data", {"dtype": "int64", "shape": (2,)}),
        ("labels/3.npy", np.array([{}], dtype=object), "bad-file", {"cause": "ValueError"}),
        ("features/x.npy", np.zeros(1), "bad-data", {}),
        ("features/99.npy", np.zeros(1), "missing-data", {"value": "99.npy"}),
    ],
)
def test_refuses_a_bad_file_by_name(
    file: str, array: np.ndarray, kind: Kind, fields: dict[str, object], latent_folder: Path
) -> None:
    path = latent_folder / f"imagenet32_{file}"
    np.save(path, array, allow_pickle=True)
    missing = latent_folder / "imagenet32_labels"

    def read() -> None:
        learned = splits(latent_folder).train.images
        for index in range(len(learned)):
            _ = learned[index]

    with raises(kind, path=str(missing if kind == "missing-data" else path), **fields):
        read()


def test_refuses_a_folder_with_none_or_two_sets_of_latents(latent_folder: Path, tmp_path: Path) -> None:
    with raises("missing-data", path=str(tmp_path / "nowhere"), choices=()):
        splits(tmp_path / "nowhere")
    (latent_folder / "features").mkdir()
    paths = tuple(str(latent_folder / name) for name in ("features", "imagenet32_features"))
    with raises("conflict", path=str(latent_folder), choices=paths):
        splits(latent_folder)


def test_refuses_fewer_than_three_pictures(tmp_path: Path) -> None:
    for kind in ("features", "labels"):
        (tmp_path / kind).mkdir()
    for pictures in range(3):
        with raises("missing-data", path=str(tmp_path / "features"), pictures=pictures, least=3):
            splits(tmp_path)
        np.save(tmp_path / "features" / f"{pictures}.npy", np.zeros((1, 4, 4, 4), np.float32))
        np.save(tmp_path / "labels" / f"{pictures}.npy", np.array([0]))
