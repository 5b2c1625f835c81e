"""Files that users give a trained network: images, tables, texts, and what is wrong with them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from expect import raises
from tasks.data.input_files import read_image, read_numbers, read_text
from tasks.input_formats import ImageInputs
from tasks.vision.imagenet import ImageNetViT

GREY = ImageInputs(channels=1, height=8, width=6)


def save(path: Path, *shape: int, mode: str | None = None) -> np.ndarray:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(path)
    return pixels


def test_image_of_the_networks_size_is_read_as_it_is(tmp_path: Path) -> None:
    pixels = save(tmp_path / "a.png", 8, 6)
    assert torch.equal(read_image(tmp_path / "a.png", GREY), torch.from_numpy(pixels)[None])
    colors = save(tmp_path / "b.png", 5, 4, 3)
    image = read_image(tmp_path / "b.png", ImageInputs(channels=3, height=5, width=4))
    assert torch.equal(image, torch.from_numpy(colors).movedim(-1, 0))


def test_other_sizes_and_modes_are_converted(tmp_path: Path) -> None:
    save(tmp_path / "wide.png", 40, 60, 3)
    save(tmp_path / "alpha.png", 20, 9, 4)
    save(tmp_path / "palette.gif", 9, 50, 3, mode="P")
    for name in ("wide.png", "alpha.png", "palette.gif"):
        assert read_image(tmp_path / name, GREY).shape == (1, 8, 6)
        assert read_image(tmp_path / name, GREY).dtype == torch.uint8
    stripes = np.zeros((8, 20), dtype=np.uint8)
    stripes[:, 7:13] = 255
    Image.fromarray(stripes).save(tmp_path / "stripes.png")
    assert (read_image(tmp_path / "stripes.png", GREY) == 255).all()  # the center is cropped


@pytest.mark.parametrize("size", [(224, 224), (300, 500), (256, 256), (401, 333)])
def test_images_are_those_of_timms_evaluation(size: tuple[int, int], tmp_path: Path) -> None:
    from timm.data import create_transform

    save(tmp_path / "a.png", *size, 3)
    task = ImageNetViT()
    input_format = task.input_format()
    assert isinstance(input_format, ImageInputs)
    image = task.preprocess(read_image(tmp_path / "a.png", input_format)[None])[0]
    with Image.open(tmp_path / "a.png") as file:
        expected = create_transform(224, interpolation="bicubic", crop_pct=0.875)(file)
    torch.testing.assert_close(image, expected, atol=1e-5, rtol=0)


def test_files_that_are_no_images_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no image")
    save(tmp_path / "whole.png", 64, 64, 3)
    (tmp_path / "cut.png").write_bytes((tmp_path / "whole.png").read_bytes()[:900])
    with raises("missing-file", path=str(tmp_path / "missing.png")):
        read_image(tmp_path / "missing.png", GREY)
    for name in ("a.png", "cut.png"):
        with raises("bad-file", path=str(tmp_path / name)):
            read_image(tmp_path / name, GREY)


def test_tables_are_numbers_with_or_without_names(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text in ("x,y\n1,2\n-3.5,4e2\n", "1,2\n-3.5,4e2\n"):
        path.write_text(text)
        assert read_numbers(path, 2).tolist() == [[1, 2], [-3.5, 400]]


@pytest.mark.parametrize(("text", "line"), [("1,2\n3\n", 2), ("x,y\n1,b\n", 2), ("1,2,3\n", 1)])
def test_lines_that_do_not_fit_are_named(text: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with raises("bad-data", path=str(path), line=line, expected=2):
        read_numbers(path, 2)


def test_empty_and_unreadable_tables_and_texts_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("x,y\n")
    with raises("bad-data", path=str(tmp_path / "empty.csv")):
        read_numbers(tmp_path / "empty.csv", 2)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    with raises("bad-file", path=str(tmp_path / "bytes")):
        read_numbers(tmp_path / "bytes", 2)
    with raises("bad-file", path=str(tmp_path / "bytes")):
        read_text(tmp_path / "bytes")
    (tmp_path / "text").write_text("grün")
    assert read_text(tmp_path / "text") == "grün"
