"""ImageNet's layouts, with a few small images."""

import os
import shutil
import tarfile
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from PIL import Image
from timm.data.auto_augment import RandAugment

from nas.counting import count
from search_spaces.errors import UserError
from search_spaces.models.families import base_of
from tasks.base import Fitted
from tasks.imagenet import ImageNetViT, _changed
from tasks.images import ImageSplits
from tasks.run import Run

TINY = replace(ImageNetViT.base, depth=1, width=16, heads=2, head_dim=8, hidden=16)
PAPER = replace(ImageNetViT.presets["paper"], epochs=0, steps=2, batch=8, loaders=0)
CPU = torch.device("cpu")


class Short(ImageNetViT):
    """The published recipe for two steps."""

    presets = {"paper": PAPER}  # noqa: RUF012


def fit(data: Path) -> Fitted:
    return Short(data).fit(Run(architecture=TINY, recipe=PAPER, seed=0))


def test_a_folder_of_images_is_learnt_from_end_to_end(image_folder: Path) -> None:
    task = ImageNetViT(image_folder)
    fitted = task.fit(Run(architecture=TINY, recipe=task.presets["smoke"], seed=0))
    assert task.classes == 3
    assert fitted.steps == 3
    assert {"accuracy", "accuracy_se", "loss", "loss_se"} == set(fitted.metrics) == set(fitted.test)


@pytest.mark.parametrize("layout", ["folder", "tar", "shards", "hub"])
def test_another_image_of_the_same_name_is_other_data(
    layout: str, image_folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, data = image_folder / "train" / "ant" / "0.jpg", image_folder
    if layout == "tar":
        data = image_folder / "packed"
        packed(image_folder, data)
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


def packed(folder: Path, place: Path) -> None:
    place.mkdir(exist_ok=True)
    for split in ("train", "val"):
        with tarfile.open(place / f"{split}.tar", "w") as file:
            file.add(folder / split, arcname=".")


@pytest.mark.parametrize("model", ["xcit_nano_12_p16_224", "deit_tiny_patch16_224"])
def test_a_model_of_timms_is_counted_and_learnt_by_the_same_path(image_folder: Path, model: str) -> None:
    task, architecture = ImageNetViT(image_folder), replace(base_of(model), depth=1)
    costs = count(task, architecture)  # before the data is read, as a worker does
    assert task.fit(Run(architecture=architecture, recipe=task.presets["smoke"], seed=0)).steps == 3
    assert costs.params == sum(parameter.numel() for parameter in task.build(architecture).parameters())
    assert costs.embedding_params is None


@pytest.mark.parametrize("layout", ["image_folder", "image_shards"])
def test_the_numbers_do_not_depend_on_how_many_processes_read(layout: str, request: pytest.FixtureRequest) -> None:
    data = request.getfixturevalue(layout)
    recipe, deeper = replace(PAPER, drop_path=0.5), replace(TINY, depth=2)  # the first layer is never dropped
    one, two = (
        Short(data).fit(Run(architecture=deeper, recipe=replace(recipe, loaders=loaders), seed=0)) for loaders in (0, 2)
    )
    assert one == two


@pytest.mark.parametrize("layout", ["image_folder", "image_shards"])
def test_a_training_goes_on_from_any_pass_as_if_it_had_never_stopped(
    layout: str, request: pytest.FixtureRequest
) -> None:
    splits = ImageNetViT(request.getfixturevalue(layout)).load()
    straight = list(islice(splits.training(PAPER, 3, (), CPU), 5))
    (images, shares), progress = next(splits.training(PAPER, 3, straight[2][1], CPU))
    assert torch.equal(images, straight[3][0][0])
    assert torch.equal(shares, straight[3][0][1])
    assert progress == (4,)


def test_validation_is_held_out_from_train_and_test_is_the_published_validation(image_folder: Path) -> None:
    splits = ImageNetViT(image_folder).load()
    assert isinstance(splits, ImageSplits)
    assert splits.held_out + splits.examples == 24
    learnt = {index for keys in islice(splits._training_keys(PAPER, 0, 0), 20) for index, _ in keys}
    held_out = set(splits._by_hash[: splits.held_out].tolist())
    assert len(held_out) == splits.held_out == 2
    assert learnt == set(range(24)) - held_out
    labels = torch.cat([labels for _, labels in splits.measured("test", replace(PAPER, batch=5), CPU)])
    assert labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    validated = torch.cat([labels for _, labels in splits.measured("validation", PAPER, CPU)])
    assert validated.tolist() == [index // 8 for index in splits._by_hash[:2].tolist()]


def test_tar_files_are_read_as_folders_are(image_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("packed")
    packed(image_folder, place)
    assert ImageNetViT(place).classes == 3
    assert fit(place).test == fit(image_folder).test


def test_a_hugging_face_data_set_is_read_as_folders_are(
    image_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hub")))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("hub"))
    monkeypatch.chdir(image_folder.parent)
    name = Path("hfds", image_folder.name)
    assert ImageNetViT(name).classes == 3
    assert fit(name).test == fit(image_folder).test


def test_webdataset_shards_are_learnt_from(image_shards: Path) -> None:
    splits = Short(image_shards).load()
    assert (splits.classes, splits.examples) == (1000, 22)
    labels = torch.cat([labels for _, labels in splits.measured("test", PAPER, CPU)])
    assert sorted(labels.tolist()) == [0] * 4 + [1] * 4 + [2] * 4
    assert fit(image_shards) == fit(image_shards)


def test_every_level_of_the_published_policy_can_be_drawn() -> None:
    transform = _changed(PAPER)
    policy = next(step for step in transform.transforms if isinstance(step, RandAugment))
    image = Image.new("RGB", (32, 32), (200, 100, 50))
    for operation in policy.ops:
        operation.prob, operation.magnitude_std = 1.0, 0.0
        for level in range(11):
            operation.magnitude = level
            assert operation(image).size == image.size


def test_what_the_folder_must_hold_is_said(image_folder: Path) -> None:
    with pytest.raises(UserError, match="Give --data FOLDER"):
        ImageNetViT().load()
    with pytest.raises(UserError, match=r"must hold one of train, train.tar"):
        ImageNetViT(image_folder / "train").load()
    Image.new("RGB", (40, 40)).save(image_folder / "val" / "ant" / "9.jpg")
    (image_folder / "val" / "cat").rename(image_folder / "val" / "dog")
    with pytest.raises(UserError, match="must have the same classes"):
        ImageNetViT(image_folder).load()


def test_a_split_without_images_is_a_mistake(tmp_path: Path) -> None:
    for split in ("train", "val"):
        (tmp_path / split).mkdir()
    with pytest.raises(UserError, match="must hold a folder of images for each class"):
        ImageNetViT(tmp_path).load()


def test_one_image_is_too_few_to_learn_and_validate_by(image_folder: Path) -> None:
    for label in ("ant", "bee", "cat"):
        for file in sorted((image_folder / "train" / label).iterdir())[label == "ant" :]:
            file.unlink()
    for label in ("bee", "cat"):
        (image_folder / "train" / label).rmdir()
        shutil.rmtree(image_folder / "val" / label)
    with pytest.raises(UserError, match="must hold 2 images or more"):
        ImageNetViT(image_folder).load()


def test_an_image_that_cannot_be_read_is_named(image_folder: Path) -> None:
    for file in (image_folder / "train").rglob("*.jpg"):
        file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(OSError, match=r"image '(ant|bee|cat)/[0-7]\.jpg' cannot be read: "):
        fit(image_folder)
