"""The command `nas encode`."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import nas
from expect import raises
from nas.cli.main import app
from search_spaces.support.errors import Kind
from tasks.data.image_sources import image_source
from tasks.diffusion.autoencoder import autoencoder, center_crop
from tasks.diffusion.imagenet_dit import ImageNetDiT


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder train/ with 3 classes of 4 small images."""
    generator, folder = np.random.default_rng(0), tmp_path_factory.mktemp("images")
    for label in ("ant", "bee", "cat"):
        (folder / "train" / label).mkdir(parents=True)
        for number in range(4):
            pixels = generator.integers(0, 256, (40, 48, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "train" / label / f"{number}.jpg")
    return folder


@pytest.fixture(scope="module")
def command(images: Path, tiny_vae: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the output of `nas encode`."""
    folder = tmp_path_factory.mktemp("encoded") / "latents"
    done = CliRunner().invoke(app, ["encode", str(images), str(folder), "--vae", str(tiny_vae), "--size", "32"])
    assert done.exit_code == 0, done.output
    return folder, done.output


@pytest.fixture
def folder(command: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(command[0], tmp_path / "latents")


def test_encodes_each_picture_and_its_mirror_image(images: Path, folder: Path, tiny_vae: Path) -> None:
    pictures, model = image_source(images, "train").images, autoencoder(tiny_vae)
    for number in (0, 5, 11):
        image, label = pictures[number]
        pixels = torch.from_numpy(np.asarray(center_crop(image, 32)).copy()).permute(2, 0, 1) / 127.5 - 1
        expected = model.encode(torch.stack((pixels, pixels.flip(2)))).latent_dist
        latents = np.load(folder / "features" / f"{number}.npy")
        assert latents.shape == (2, 4, 4, 4)
        apart = np.abs(latents / 0.18215 - expected.mean.detach().numpy()) / expected.std.detach().numpy()
        assert 0.3 < apart.mean() < 1.3, "draws around the mean"
        assert np.load(folder / "labels" / f"{number}.npy").tolist() == [label]
    reference = np.load(folder / "reference.npz")["arr_0"]
    assert np.array_equal(reference[5], np.asarray(center_crop(pictures[5][0], 32)))
    assert len(reference) == 12
    assert ImageNetDiT(folder).splits.num_examples == 10


def test_resume_gives_the_same_latents(images: Path, folder: Path, tiny_vae: Path) -> None:
    before = {file: file.read_bytes() for file in folder.rglob("*.np?")}
    for name in ("labels/9.npy", "features/11.npy", "labels/11.npy", "reference.npz"):
        (folder / name).unlink()
    modified_at = (folder / "features" / "0.npy").stat().st_mtime_ns
    folders = nas.encode(images, folder, vae=str(tiny_vae), size=32)
    assert (folders.pictures, folders.classes, folders.shape) == (12, 3, (4, 4, 4))
    assert {file: file.read_bytes() for file in folder.rglob("*.np?")} == before
    assert (folder / "features" / "0.npy").stat().st_mtime_ns == modified_at


def test_refuses_a_folder_with_other_latents(images: Path, folder: Path, tiny_vae: Path) -> None:
    with raises("mismatch", path=str(folder), settings=("size",)):
        nas.encode(images, folder, vae=str(tiny_vae), size=16)
    more = images / "train" / "ant" / "more.jpg"
    Image.new("RGB", (40, 40)).save(more)
    with raises("mismatch", path=str(folder), settings=("images",)):
        nas.encode(images, folder, vae=str(tiny_vae), size=32)
    more.unlink()
    record = folder / "encoded.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "vae": "0" * 12}))
    with raises("mismatch", path=str(folder), settings=("vae",)):
        nas.encode(images, folder, vae=str(tiny_vae), size=32)
    record.write_text("[]")
    with raises("bad-file", path=str(record), cause="TypeError"):
        nas.encode(images, folder, vae=str(tiny_vae), size=32)
    record.unlink()
    with raises("mismatch", path=str(folder)):
        nas.encode(images, folder, vae=str(tiny_vae), size=32)


def test_refuses_a_size_that_does_not_divide_into_patches(images: Path, tmp_path: Path, tiny_vae: Path) -> None:
    sizes: list[tuple[int, Kind]] = [(0, "out-of-range"), (24, "mismatch"), (-32, "out-of-range")]
    for size, kind in sizes:
        with raises(kind, option="--size", value=size, step=16):
            nas.encode(images, tmp_path / "latents", vae=str(tiny_vae), size=size)
        assert not (tmp_path / "latents").exists()


def test_the_command_prints_the_next_command(command: tuple[Path, str]) -> None:
    folder, output = command
    *_, counts, following = output.splitlines()
    assert Counter(re.findall(r"\d+", counts)) == Counter(["12", "3", "4", "4", "4"])
    assert following.split() == ["nas", "evaluate", "imagenet-dit", "--data", str(folder)]
