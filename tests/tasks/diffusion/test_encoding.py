"""Images to latents."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import nas
from nas.cli import app
from search_spaces.errors import UserError
from tasks.diffusion.autoencoder import autoencoder, cropped
from tasks.diffusion.imagenet_dit import ImageNetDiT
from tasks.image_sources import source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "latents"


def test_latents_are_of_each_picture_and_its_mirror_image(image_folder: Path, folder: Path, tiny_vae: Path) -> None:
    found = nas.encode(image_folder, folder, vae=str(tiny_vae), size=32)
    assert (found.pictures, found.classes, found.shape) == (24, 3, (4, 4, 4))
    images, model = source(image_folder, "train").images, autoencoder(tiny_vae)
    for number in (0, 9, 23):
        image, label = images[number]
        pixels = torch.from_numpy(np.asarray(cropped(image, 32)).copy()).permute(2, 0, 1) / 127.5 - 1
        expected = model.encode(torch.stack((pixels, pixels.flip(2)))).latent_dist
        latents = np.load(folder / "features" / f"{number}.npy")
        assert latents.shape == (2, 4, 4, 4)
        apart = np.abs(latents / 0.18215 - expected.mean.detach().numpy()) / expected.std.detach().numpy()
        assert 0.3 < apart.mean() < 1.3, "draws around the mean"
        assert np.load(folder / "labels" / f"{number}.npy").tolist() == [label]
    reference = np.load(folder / "reference.npz")["arr_0"]
    assert np.array_equal(reference[5], np.asarray(cropped(images[5][0], 32)))
    assert len(reference) == 24
    assert ImageNetDiT(folder).splits.examples == 20


def test_what_was_interrupted_goes_on_to_the_same_latents(image_folder: Path, folder: Path, tiny_vae: Path) -> None:
    nas.encode(image_folder, folder, vae=str(tiny_vae), size=32)
    before = {file: file.read_bytes() for file in folder.rglob("*.np?")}
    for gone in ("labels/9.npy", "features/23.npy", "labels/23.npy", "reference.npz"):
        (folder / gone).unlink()
    kept = (folder / "features" / "0.npy").stat().st_mtime_ns
    nas.encode(image_folder, folder, vae=str(tiny_vae), size=32)
    assert {file: file.read_bytes() for file in folder.rglob("*.np?")} == before
    assert (folder / "features" / "0.npy").stat().st_mtime_ns == kept


def test_a_folder_has_latents_of_one_making(image_folder: Path, folder: Path, tiny_vae: Path) -> None:
    nas.encode(image_folder, folder, vae=str(tiny_vae), size=32)
    with pytest.raises(UserError, match="latents of other size"):
        nas.encode(image_folder, folder, vae=str(tiny_vae), size=16)
    Image.new("RGB", (40, 40)).save(image_folder / "train" / "ant" / "more.jpg")
    with pytest.raises(UserError, match="latents of other images"):
        nas.encode(image_folder, folder, vae=str(tiny_vae), size=32)
    (folder / "encoded.json").write_text("[]")
    with pytest.raises(UserError, match="cannot be read"):
        nas.encode(image_folder, folder, vae=str(tiny_vae), size=32)
    (folder / "encoded.json").unlink()
    with pytest.raises(UserError, match="did not write"):
        nas.encode(image_folder, folder, vae=str(tiny_vae), size=32)


def test_another_autoencoder_is_another_making(image_folder: Path, folder: Path, tiny_vae: Path) -> None:
    nas.encode(image_folder, folder, vae=str(tiny_vae), size=32)
    record = json.loads((folder / "encoded.json").read_text())
    (folder / "encoded.json").write_text(json.dumps({**record, "vae": "0" * 12}))
    with pytest.raises(UserError, match="latents of other vae"):
        nas.encode(image_folder, folder, vae=str(tiny_vae), size=32)


@pytest.mark.parametrize("size", [0, 24, -32])
def test_a_size_that_makes_no_patches_is_refused(size: int, image_folder: Path, folder: Path, tiny_vae: Path) -> None:
    with pytest.raises(UserError, match="multiple of 16"):
        nas.encode(image_folder, folder, vae=str(tiny_vae), size=size)
    assert not folder.exists()


def test_the_command_says_what_is_next(image_folder: Path, folder: Path, tiny_vae: Path) -> None:
    words = ["encode", str(image_folder), str(folder), "--vae", str(tiny_vae), "--size", "32"]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 0, said.output
    assert "latents of 24 pictures of 3 classes, 4 x 4 x 4" in said.output
    assert "nas evaluate imagenet-dit --data" in said.output
