"""Small data sets in the real layouts."""

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torchvision.datasets import CIFAR10


@pytest.fixture
def cifar10_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """CIFAR-10's own files with 20 images each; torchvision is told their MD5s."""
    folder = tmp_path / CIFAR10.base_folder
    folder.mkdir()
    generator = np.random.default_rng(0)
    md5s = {}
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        labels = [i % 10 for i in range(20)]
        pixels = generator.integers(0, 256, (20, 3072), dtype=np.uint8)
        md5s[name] = _pickle(folder / name, {"data": pixels, "labels": labels})
    meta = _pickle(folder / "batches.meta", {"label_names": [str(i) for i in range(10)]})
    monkeypatch.setattr(CIFAR10, "train_list", [[name, md5] for name, md5 in md5s.items() if name != "test_batch"])
    monkeypatch.setattr(CIFAR10, "test_list", [["test_batch", md5s["test_batch"]]])
    monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": meta})
    return tmp_path


@pytest.fixture
def image_folder(tmp_path: Path) -> Path:
    """train/ and val/ with 3 classes of 8 and 4 small images."""
    generator = np.random.default_rng(0)
    for split, examples in (("train", 8), ("val", 4)):
        for label in ("ant", "bee", "cat"):
            folder = tmp_path / split / label
            folder.mkdir(parents=True)
            for i in range(examples):
                pixels = generator.integers(0, 256, (40, 48, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / f"{i}.jpg")
    return tmp_path


def _pickle(path: Path, content: object) -> str:
    path.write_bytes(pickle.dumps(content))
    return hashlib.md5(path.read_bytes()).hexdigest()
