"""Latents, decoded pictures and crops."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from expect import raises
from search_spaces.support.errors import Kind
from tasks.diffusion.autoencoder import autoencoder, center_crop, decode_latents, encode_latents


def test_latents_are_samples_times_the_models_scale(tiny_vae: Path) -> None:
    model = autoencoder(tiny_vae)
    pictures = torch.rand(2, 3, 32, 32) * 2 - 1
    latents = encode_latents(model, pictures, torch.Generator().manual_seed(3))
    moments = model.encode(pictures).latent_dist
    noise = torch.randn(moments.mean.shape, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(latents, 0.18215 * (moments.mean + moments.std * noise))
    assert latents.shape == (2, 4, 4, 4)


def test_decoded_pictures_are_bytes(tiny_vae: Path) -> None:
    model = autoencoder(tiny_vae)
    latents = torch.randn(11, 4, 4, 4)
    expected = (model.decode(latents / 0.18215).sample * 127.5 + 128).clamp(0, 255)
    pictures = decode_latents(model, latents)
    assert pictures.dtype == torch.uint8
    torch.testing.assert_close(pictures.float(), expected.floor(), atol=1, rtol=0)


def test_refuses_a_folder_without_an_autoencoder(tmp_path: Path) -> None:
    with raises("bad-file", option="--vae", path=str(tmp_path)):
        autoencoder(tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "field"),
    [
        ("nobody/nothing", "unavailable", "value"),
        (Path("nobody/nothing"), "missing-file", "path"),
        ("./nothing", "missing-file", "path"),
        ("/nobody/nothing", "missing-file", "path"),
        ("~/nothing", "missing-file", "path"),
    ],
)
def test_refuses_an_autoencoder_that_is_neither_there_nor_given_by_the_hub(
    name: str | Path, kind: Kind, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object, **__: object) -> object:
        raise OSError("no network")

    monkeypatch.setattr("diffusers.models.autoencoders.autoencoder_kl.AutoencoderKL.from_pretrained", ask)
    with raises(kind, option="--vae", cause="OSError", **{field: str(name)}):
        autoencoder(name)


def test_crops_an_image_of_any_size() -> None:
    sizes = (70, 90), (64, 64), (300, 129), (20, 31)
    size_after = {size: center_crop(Image.new("L", size), 32).size for size in sizes}
    assert size_after == dict.fromkeys(sizes, (32, 32))


def test_large_images_are_halved_by_box_filters_first() -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (128, 256, 3), dtype=np.uint8)
    boxes = pixels.reshape(32, 4, 64, 4, 3).mean((1, 3))
    crop = np.asarray(center_crop(Image.fromarray(pixels), 32)).astype(float)
    assert np.abs(crop - boxes[:, 16:48]).max() <= 2  # four roundings of bytes
