"""Small data in the layouts of the Long Range Arena."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

LISTS = ("( ( ( [MAX 2 ) 9 ) ] )", "( ( ( ( [SM 5 ) 6 ) ( ( ( [MIN 0 ) 7 ) ] ) ) ] )", "( ( ( [MED 4 ) 1 ) ] )")
ANSWERS = (9, 1, 2)


@pytest.fixture
def listops_folder(tmp_path: Path) -> Path:
    """The unpacked release: lists with the line ends of Python's csv."""
    folder = tmp_path / "lra_release" / "lra_release" / "listops-1000"
    folder.mkdir(parents=True)
    for split, times in (("train", 6), ("val", 2), ("test", 1)):
        lines = [f"{source}\t{answer}\r\n" for source, answer in zip(LISTS, ANSWERS, strict=True)] * times
        (folder / f"basic_{split}.tsv").write_bytes("".join(["Source\tTarget\r\n", *lines]).encode())
    return tmp_path


@pytest.fixture
def pathfinder_folder(tmp_path: Path) -> Path:
    """Twenty-one images in three folders; the last image is an empty file."""
    folder = tmp_path / "pathfinder32" / "curv_contour_length_14"
    (folder / "metadata").mkdir(parents=True)
    generator = np.random.default_rng(0)
    for batch in range(3):
        images = folder / "imgs" / str(batch)
        images.mkdir(parents=True)
        lines = []
        for i in range(7):
            pixels = generator.integers(0, 256, (32, 32), dtype=np.uint8)
            pixels[0, 0] = 10 * batch + i  # the number of the image
            Image.fromarray(pixels).save(images / f"sample_{i}.png")
            lines.append(f"imgs/{batch} sample_{i}.png {i} {i % 2} 1.0 14 4 2 0.5 1 1\n")
        (folder / "metadata" / f"{batch}.npy").write_text("".join(lines))
    (folder / "imgs" / "2" / "sample_6.png").write_bytes(b"")
    return tmp_path
