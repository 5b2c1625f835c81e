"""CIFAR-10 from its own files."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from expect import raises
from tasks.run import Run
from tasks.vision.cifar10 import Cifar10ViT

TINY = replace(Cifar10ViT.base, depth=1, width=16, heads=2, head_dim=8, hidden=16)


def test_images_are_the_bytes_of_the_files_by_channel_row_and_column(cifar10_folder: Path) -> None:
    images, labels = Cifar10ViT(cifar10_folder).splits.test
    with (cifar10_folder / "cifar-10-batches-py" / "test_batch").open("rb") as file:
        batch = pickle.load(file)
    assert labels.tolist() == batch["labels"]
    assert images.dtype == torch.uint8
    assert images[7, 2, 5, 11] == batch["data"][7, 2 * 1024 + 5 * 32 + 11]


def test_the_published_network_has_the_published_size() -> None:
    task = Cifar10ViT()
    biases = 6 * 3 * 256  # biases of queries, keys and values, missing in theirs
    assert round((task.closed_form(task.base_for("paper")).params - biases) / 1e6, 3) == 3.191


def test_a_tenth_of_the_training_images_is_held_out(cifar10_folder: Path) -> None:
    splits = Cifar10ViT(cifar10_folder).load()
    assert [len(part[0]) for part in (splits.train, splits.validation, splits.test)] == [90, 10, 20]
    assert sorted(splits.validation[1].tolist()) == list(range(10))


def test_pixels_are_normalized(cifar10_folder: Path) -> None:
    splits = Cifar10ViT(cifar10_folder).load()
    white = splits.encode(torch.full((1, 3, 1, 1), 255, dtype=torch.uint8))
    assert white.flatten().tolist() == pytest.approx(
        [(1 - 0.4914) / 0.2470, (1 - 0.4822) / 0.2435, (1 - 0.4465) / 0.2616]
    )


def test_the_published_recipe_trains(cifar10_folder: Path) -> None:
    class Short(Cifar10ViT):
        presets = {"paper": replace(Cifar10ViT.presets["paper"], epochs=0, steps=2, batch=8)}  # noqa: RUF012

    result = Short(cifar10_folder).fit(Run(architecture=TINY, recipe=Short.presets["paper"], seed=0))
    assert result.steps == 2


@pytest.mark.parametrize("name", ["batches.meta", "data_batch_3"])
def test_a_modified_pickle_is_not_opened(cifar10_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with (cifar10_folder / "cifar-10-batches-py" / name).open("ab") as file:
        file.write(b" ")
    opens: list[str] = []
    load = pickle.load
    monkeypatch.setattr(pickle, "load", lambda file, encoding: opens.append(file.name) or load(file, encoding=encoding))
    with raises("bad-file", path=str(cifar10_folder / "cifar-10-batches-py")):
        Cifar10ViT(cifar10_folder).load()
    assert not any(file.endswith(name) for file in opens)


def test_missing_data_is_reported(tmp_path: Path) -> None:
    with raises("missing-data", option="--data", task="cifar10-vit") as caught:
        Cifar10ViT().load()
    assert "path" not in caught.value.fields
    with raises("missing-data", option="--data", task="cifar10-vit", path=str(tmp_path)):
        Cifar10ViT(tmp_path).load()
