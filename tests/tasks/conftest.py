"""Small data sets in their real layouts."""

import hashlib
import importlib.metadata
import io
import json
import os
import pickle
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.datasets import CIFAR10

from tasks.glue.glue_files import GLUE

WORDS = ("the", "module", "returns", "a", "list", "of", "names", "and", "values")


@pytest.fixture(autouse=True, scope="session")
def own_cache_of_tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of generated data for this session, shared by the workers of pytest-xdist."""
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NAS_CACHE", str((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache"))
        yield


@pytest.fixture(autouse=True, scope="session")
def no_plugins_of_lightning() -> Iterator[None]:
    """Skip Lightning's search for plug-ins at each training, which takes 50 ms."""
    entry_points = importlib.metadata.entry_points

    def without_lightnings(**selection: Any) -> Any:
        return () if selection.get("group", "").startswith("lightning") else entry_points(**selection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.metadata, "entry_points", without_lightnings)
        for name in ("lightning.fabric.utilities.registry", "lightning_fabric.utilities.registry"):
            if name in sys.modules:
                patch.setattr(sys.modules[name], "entry_points", without_lightnings)
        yield


@pytest.fixture
def checkpoint_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save a checkpoint after every step."""
    monkeypatch.setattr("tasks.training.checkpoint.SECONDS", -1.0)
    monkeypatch.setattr("tasks.training.checkpoint._SHARE", 1e9)


@pytest.fixture
def cifar10_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """CIFAR-10's files with 20 images each; torchvision gets their MD5s."""
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


@pytest.fixture
def image_shards(image_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same images in webdataset shards of 6, with timm's listing."""
    folder = tmp_path_factory.mktemp("shards")
    listing = {}
    for split in ("train", "val"):
        files = sorted((image_folder / split).rglob("*.jpg"))
        parts = [files[i::4] for i in range(4)]
        names = [f"{split}-{i}.tar" for i in range(4)]
        for name, part in zip(names, parts, strict=True):
            _write_shard(folder / name, part)
        lengths = [len(part) for part in parts]
        listing[split] = {"name": split, "num_samples": sum(lengths), "filenames": names, "shard_lengths": lengths}
    (folder / "_info.json").write_text(json.dumps({"splits": listing}))
    return folder


@pytest.fixture
def imdb_folder(tmp_path: Path) -> Path:
    """IMDb's folders with 20 reviews per class for training and 5 for testing."""
    for split, reviews in (("train", 20), ("test", 5)):
        for label, stars, word in (("neg", 2, "bad"), ("pos", 9, "good")):
            folder = tmp_path / "aclImdb" / split / label
            folder.mkdir(parents=True)
            for number in range(reviews):
                (folder / f"{number}_{stars}.txt").write_text(f"{split} {number}: {word} <br />café", encoding="utf-8")
    return tmp_path


@pytest.fixture
def aan_folder(tmp_path: Path) -> Path:
    """Pairs of papers as released: 8 for training, 4 for validation and 4 for testing."""
    folder = tmp_path / "lra_release" / "lra_release" / "tsv_data"
    folder.mkdir(parents=True)
    for split, pairs in (("train", 8), ("eval", 4), ("test", 4)):
        lines = [f"{i % 2}.0\tP{i}\tC{i}\tb'{split} \"{i}'\tb'cited {i}'\n" for i in range(pairs)]
        (folder / f"new_aan_pairs.{split}.tsv").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def _write_shard(path: Path, images: list[Path]) -> None:
    with tarfile.open(path, "w") as file:
        for number, image in enumerate(images):
            label = sorted(folder.name for folder in image.parents[1].iterdir()).index(image.parent.name)
            for ending, content in (("jpg", image.read_bytes()), ("cls", str(label).encode())):
                entry = tarfile.TarInfo(f"{number:04d}.{ending}")
                entry.size = len(content)
                file.addfile(entry, io.BytesIO(content))


def _pickle(path: Path, content: object) -> str:
    path.write_bytes(pickle.dumps(content))
    return hashlib.md5(path.read_bytes()).hexdigest()


class TinyInception(nn.Module):
    """A fast substitute for Inception: pooled features, logits and spatial features."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.Mixed_6d = nn.ModuleDict({"branch1x1": nn.Conv2d(3, 9, 4, 16)})
        self.fc = nn.Linear(9, 5, bias=False)
        self.requires_grad_(False)

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        features = self.Mixed_6d["branch1x1"](pictures / 64 - 2).relu().mean((2, 3))
        return features, self.fc(features)


@pytest.fixture(scope="session")
def tiny_vae(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A diffusers autoencoder with 25,000 random weights; latents have an eighth of the sides."""
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    model = diffusers.AutoencoderKL(
        block_out_channels=(8,) * 4,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        norm_num_groups=4,
    )
    folder = tmp_path_factory.mktemp("vae")
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def latent_folder(tmp_path: Path, tiny_vae: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """fast-DiT's folders with 24 pictures of 3 classes, and statistics of the tiny Inception."""
    monkeypatch.setattr("tasks.diffusion.imagenet_dit.inception", lambda weights: TinyInception())
    generator = np.random.default_rng(0)
    for number in range(24):
        for kind, array in (
            ("features", generator.normal(size=(1, 4, 4, 4)).astype(np.float32)),
            ("labels", np.array([number % 3])),
        ):
            folder = tmp_path / f"imagenet32_{kind}"
            folder.mkdir(exist_ok=True)
            np.save(folder / f"{number}.npy", array)
    shutil.copytree(tiny_vae, tmp_path / "vae")
    np.savez(tmp_path / "reference.npz", arr_0=generator.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8))
    return tmp_path


@pytest.fixture
def text_folder(tmp_path: Path) -> Path:
    """JSON Lines with 40 documents for training, 10 for validation and 10 for testing."""
    draw = np.random.default_rng(0)
    for split, documents in (("train", 40), ("validation", 10), ("test", 10)):
        lines = [json.dumps({"text": " ".join(draw.choice(WORDS, 30))}) for _ in range(documents)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines))
    return tmp_path


@pytest.fixture
def glue_data(text_folder: Path) -> Path:
    """GLUE's eight sets in its own files of 40 and 10 lines, and a text for pretraining, as for `--data`."""
    draw, folder = np.random.default_rng(1), text_folder / "glue"
    for of in GLUE.values():
        header = of.header or ("id", *of.columns, of.label)
        for name, lines in (("train", 40), *((dev, 10) for dev in of.dev)):
            rows = [] if of.header else ["\t".join(header)]
            for number in range(lines):
                label = of.labels[number % len(of.labels)] if of.labels else f"{number % 6}.0"
                values = {"id": str(number), "source": "gj04", "mark": "", of.label: label}
                rows.append("\t".join(values.get(column) or " ".join(draw.choice(WORDS, 5)) for column in header))
            path = folder / of.folder / f"{name}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(rows) + "\n")
    return Path(f"{folder},pretraining={text_folder}")
