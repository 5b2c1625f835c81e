"""ImageNet's layouts with a few small images."""

import os
import shutil
import tarfile
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data.auto_augment import RandAugment

from expect import raises
from nas.costs.count import count
from search_spaces.models.families import base_of
from search_spaces.support.errors import Kind
from tasks.base import FitResult
from tasks.data.image_sources import image_source
from tasks.data.image_splits import ImageSplits
from tasks.run import Run
from tasks.vision.imagenet import ImageNetViT

TINY = replace(ImageNetViT.base, depth=1, width=16, heads=2, head_dim=8, hidden=16)
PAPER = replace(ImageNetViT.presets["paper"], epochs=0, steps=2, batch=8, loaders=0)
CPU = torch.device("cpu")


class Short(ImageNetViT):
    presets = {"paper": PAPER}  # noqa: RUF012


def fit(data: Path) -> FitResult:
    return Short(data).fit(Run(architecture=TINY, recipe=PAPER, seed=0))


def test_a_training_on_a_folder_of_images(image_folder: Path) -> None:
    task = ImageNetViT(image_folder)
    result = task.fit(Run(architecture=TINY, recipe=task.presets["smoke"], seed=0))
    assert task.classes == 3
    assert result.steps == 3
    assert {"accuracy", "accuracy_se", "loss", "loss_se"} == set(result.metrics) == set(result.test)


@pytest.mark.parametrize("layout", ["folder", "tar", "shards", "hub"])
def test_a_changed_image_changes_the_fingerprint(
    layout: str, image_folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, data = image_folder / "train" / "ant" / "0.jpg", image_folder
    if layout == "tar":
        data = image_folder / "packed"
        pack(image_folder, data)
        file = data / "train.tar"
    elif layout == "shards":
        data = request.getfixturevalue("image_shards")
        file = data / "train-0.tar"
    elif layout == "hub":
        monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", image_folder.parent / "hub")
        monkeypatch.chdir(image_folder.parent)
        data = Path("hfds", image_folder.name)
    before = [ImageNetViT(data).fingerprint(PAPER) for _ in range(2)]
    os.utime(file, ns=(1, 1))
    assert before[0] == before[1] != ImageNetViT(data).fingerprint(PAPER)


def pack(folder: Path, place: Path) -> None:
    place.mkdir(exist_ok=True)
    for split in ("train", "val"):
        with tarfile.open(place / f"{split}.tar", "w") as file:
            file.add(folder / split, arcname=".")


@pytest.mark.parametrize(
    "model", ["xcit_nano_12_p16_224", pytest.param("deit_tiny_patch16_224", marks=pytest.mark.slow)]
)
def test_timm_models_are_counted_and_trained(image_folder: Path, model: str) -> None:
    task, architecture = ImageNetViT(image_folder), replace(base_of(model), depth=1)
    costs = count(task, architecture)  # before reading the data, like a worker
    assert task.fit(Run(architecture=architecture, recipe=task.presets["smoke"], seed=0)).steps == 3
    assert costs.params == sum(parameter.numel() for parameter in task.build(architecture).parameters())
    assert costs.embedding_params is None


@pytest.mark.parametrize(
    ("layout", "most"),
    [
        ("image_shards", 1),
        *(pytest.param(layout, 2, marks=pytest.mark.slow) for layout in ("image_folder", "image_shards")),
    ],
)
def test_a_training_does_not_depend_on_the_number_of_loaders(
    layout: str, most: int, request: pytest.FixtureRequest
) -> None:
    data = request.getfixturevalue(layout)
    recipe = replace(PAPER, drop_path=0.5, measured=4)
    deeper = replace(TINY, depth=2)  # the first layer is never dropped
    first, second = (
        Short(data).fit(Run(architecture=deeper, recipe=replace(recipe, loaders=loaders), seed=0))
        for loaders in (0, most)
    )
    assert first == second


def test_batches_do_not_depend_on_the_number_of_loaders(image_folder: Path) -> None:
    same(batches(image_folder), batches(image_folder, loaders=2))


def batches(data: Path, loaders: int = 0) -> list[tuple[Any, ...]]:
    """Two batches of training, and those of validation and test."""
    splits, recipe = ImageNetViT(data).load(), replace(PAPER, loaders=loaders)
    return [
        *(batch for batch, _ in islice(splits.training_batches(recipe, 0, (), CPU), 2)),
        *splits.evaluation_batches("validation", recipe, CPU),
        *splits.evaluation_batches("test", recipe, CPU),
    ]


def same(first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> None:
    for pair in zip(first, second, strict=True):
        for tensors in zip(*pair, strict=True):
            assert torch.equal(*tensors)


@pytest.mark.parametrize("layout", ["image_folder", "image_shards"])
def test_batches_resume_from_any_position(layout: str, request: pytest.FixtureRequest) -> None:
    splits = ImageNetViT(request.getfixturevalue(layout)).load()
    straight = list(islice(splits.training_batches(PAPER, 3, (), CPU), 5))
    (images, shares), progress = next(splits.training_batches(PAPER, 3, straight[2][1], CPU))
    assert torch.equal(images, straight[3][0][0])
    assert torch.equal(shares, straight[3][0][1])
    assert progress == (4,)


def pixels(image: Image.Image) -> torch.Tensor:
    """A number that is unique to the image."""
    return torch.tensor(np.asarray(image.convert("RGB"), dtype=np.int64).sum())


def test_validation_is_held_out_from_train_and_test_is_the_published_validation(image_folder: Path) -> None:
    splits = ImageNetViT(image_folder).load()
    assert isinstance(splits, ImageSplits)
    assert (splits.held_out, splits.num_examples) == (2, 22)
    sums = replace(
        splits,
        eval_transform=pixels,
        train_transform=lambda recipe: pixels,
        augment=lambda batch, recipe, generator: batch,
    )
    files = sorted((image_folder / "train").rglob("*.jpg"))
    label_of = {int(pixels(Image.open(file))): number // 8 for number, file in enumerate(files)}
    assert len(label_of) == 24
    ((images, labels),) = sums.evaluation_batches("validation", PAPER, CPU)
    held_out = dict(zip(images.tolist(), labels.tolist(), strict=True))
    assert len(held_out) == 2
    assert held_out.items() <= label_of.items()
    batches = [batch for batch, _ in islice(sums.training_batches(PAPER, 0, (), CPU), 20)]
    learned = {pair for images, labels in batches for pair in zip(images.tolist(), labels.tolist(), strict=True)}
    assert learned == label_of.items() - held_out.items()
    labels = torch.cat([labels for _, labels in splits.evaluation_batches("test", replace(PAPER, batch=5), CPU)])
    assert labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_tar_files_are_read_like_folders(image_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("packed")
    pack(image_folder, place)
    assert ImageNetViT(place).classes == 3
    same(batches(place), batches(image_folder))


def test_hugging_face_data_sets_are_read_like_folders(
    image_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hub")))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("hub"))
    monkeypatch.chdir(image_folder.parent)
    name = Path("hfds", image_folder.name)
    assert ImageNetViT(name).classes == 3
    same(batches(name), batches(image_folder))


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ImportError("x"), "needs-extra"), (ValueError("x"), "missing-data"), (ConnectionError("x"), "unavailable")],
)
def test_hugging_face_data_that_cannot_be_read_are_refused(
    error: Exception, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object, **__: object) -> object:
        raise error

    monkeypatch.setattr("tasks.data.image_sources._reader", ask)
    with raises(kind, option="--data", value="hfds/x", split="train", cause=type(error).__name__):
        image_source(Path("hfds", "x"), "train")


def test_a_training_on_webdataset_shards(image_shards: Path) -> None:
    splits = Short(image_shards).load()
    assert (splits.classes, splits.num_examples) == (1000, 22)
    labels = torch.cat([labels for _, labels in splits.evaluation_batches("test", PAPER, CPU)])
    assert sorted(labels.tolist()) == [0] * 4 + [1] * 4 + [2] * 4
    assert fit(image_shards) == fit(image_shards)


def test_every_level_of_the_published_augmentation_works(image_folder: Path) -> None:
    splits = ImageNetViT(image_folder).load()
    assert isinstance(splits, ImageSplits)
    transform: Any = splits.train_transform(PAPER)
    policy = next(step for step in transform.transforms if isinstance(step, RandAugment))
    image = Image.new("RGB", (32, 32), (200, 100, 50))
    for operation in policy.ops:
        operation.prob, operation.magnitude_std = 1.0, 0.0
        for level in range(11):
            operation.magnitude = level
            assert operation(image).size == image.size


def test_incomplete_folders_are_refused(image_folder: Path) -> None:
    with raises("missing-data", option="--data", task="imagenet-vit"):
        ImageNetViT().load()
    with raises("missing-data", path=str(image_folder / "train"), split="train"):
        ImageNetViT(image_folder / "train").load()
    Image.new("RGB", (40, 40)).save(image_folder / "val" / "ant" / "9.jpg")
    (image_folder / "val" / "cat").rename(image_folder / "val" / "dog")
    with raises("mismatch", option="classes", path=str(image_folder)):
        ImageNetViT(image_folder).load()


def test_a_split_without_images_is_refused(tmp_path: Path) -> None:
    for split in ("train", "val"):
        (tmp_path / split).mkdir()
    with raises("bad-data", path=str(tmp_path / "train")):
        ImageNetViT(tmp_path).load()


def test_one_training_image_is_refused(image_folder: Path) -> None:
    for label in ("ant", "bee", "cat"):
        for file in sorted((image_folder / "train" / label).iterdir())[label == "ant" :]:
            file.unlink()
    for label in ("bee", "cat"):
        (image_folder / "train" / label).rmdir()
        shutil.rmtree(image_folder / "val" / label)
    with raises("missing-data", path=str(image_folder), images=1, least=2):
        ImageNetViT(image_folder).load()


def test_an_unreadable_image_is_named(image_folder: Path) -> None:
    for file in (image_folder / "train").rglob("*.jpg"):
        file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(OSError, match=r"(ant|bee|cat)/[0-7]\.jpg"):
        fit(image_folder)
