"""cifar10-vit: CIFAR-10 from a local folder."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError
from search_spaces.support.files import check_regular_file
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits
from tasks.input_formats import ImageInputs, InputFormat
from tasks.vision.task import MixRecipe, ViTTask, crop_and_flip, mix, stratify

if TYPE_CHECKING:
    from torchvision.datasets import CIFAR10

_HELD_OUT = 5000
_MEAN, _STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
_PADDING = 4
_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class Cifar10ViT(ViTTask):
    """CIFAR-10: 50,000 training images of 32 x 32, of which 5,000 are for validation, and 10,000 test images.

    The base is small enough for one core. The preset "paper" trains ViT-Lite-6/4 with the recipe of Hassani et al.
    ("Escaping the Big Data Paradigm with Compact Transformers", 2021). They report 3.19 M parameters, and 90.9 % after
    200 epochs. There are two differences:

    * Images are cropped and mirrored, without RandAugment and erasing.
    * Training has 45,000 images instead of 50,000.
    """

    name = "cifar10-vit"
    version = 1
    base = Architecture(depth=6, width=64, heads=4, head_dim=16, hidden=128)
    bases = {"paper": Architecture(depth=6, width=256, heads=4, head_dim=64, hidden=512)}  # noqa: RUF012
    image = (3, 32, 32)
    patch = 4
    classes = 10
    presets = {  # noqa: RUF012  # Task declares it a ClassVar
        "smoke": MixRecipe(steps=20, batch=32, lr=2e-3, measured=100, reports=2),
        "proxy": MixRecipe(steps=250, batch=64, lr=2e-3, measured=1000),
        "paper": MixRecipe(
            epochs=200,
            batch=128,
            lr=5.5e-4,
            weight_decay=0.06,
            warmup=0.05,
            floor=0.018,
            label_smoothing=0.1,
            drop_path=0.1,
            mixup=0.8,
            cutmix=1.0,
            precision="bf16-mixed",
        ),
    }

    def load(self) -> TensorSplits:
        """Read the published batches, as bytes. Raises UserError if they are missing."""
        train, validation, test = read_cifar10(self.name, self.data)
        return TensorSplits(train, validation, test, augment=self._augment, encode=_normalize)

    def input_format(self) -> InputFormat:
        return ImageInputs(channels=3, height=32, width=32)

    def preprocess(self, inputs: Tensor) -> Tensor:
        """Standardize bytes as in training."""
        return _normalize(inputs)

    def class_names(self) -> tuple[str, ...]:
        return _CLASSES

    def _augment(self, batch: Batch, recipe: MixRecipe, generator: Generator) -> Batch:
        images, labels = batch
        return mix((crop_and_flip(images, _PADDING, generator).float(), labels), recipe, self.classes, generator)


def read_cifar10(task: str, data: Path | None) -> tuple[Batch, Batch, Batch]:
    """Return training, validation and test data: images as bytes [E, 3, 32, 32], and classes.

    The published batches are pickles, which can execute code. torchvision opens them only if their MD5 matches.

    Raises:
        UserError: No folder was given, or it lacks the published batches.
    """
    from torchvision.datasets import CIFAR10  # takes almost two seconds

    layout = f"the folder that contains {CIFAR10.base_folder}/ with data_batch_1 .. data_batch_5 and test_batch"
    if data is None:
        message = f"task {task!r} needs {layout}. Download {CIFAR10.url}, and give --data FOLDER."
        raise UserError("missing-data", message, option="--data", task=task, source=CIFAR10.url)
    if not (data / CIFAR10.base_folder).is_dir():
        message = f"--data of task {task!r} must be {layout}, got {str(data)!r}."
        raise UserError("missing-data", message, option="--data", task=task, path=str(data))
    for path in (data / CIFAR10.base_folder).iterdir():
        check_regular_file(path)
    try:
        learned, test = (CIFAR10(data, train=train) for train in (True, False))
    except RuntimeError as error:
        raise UserError(
            "bad-file",
            f"the files in {str(data / CIFAR10.base_folder)!r} must be the published ones: a file is missing, "
            f"or its MD5 differs. Other pickles are not opened. Unpack {CIFAR10.url} there again.",
            path=str(data / CIFAR10.base_folder),
        ) from error
    images, labels = _tensors(learned)
    validation, train = stratify(labels, (min(_HELD_OUT, len(labels) // 10),))
    return (images[train], labels[train]), (images[validation], labels[validation]), _tensors(test)


def _tensors(dataset: "CIFAR10") -> Batch:
    images = torch.from_numpy(dataset.data).movedim(-1, 1).contiguous()  # bytes, [E, 3, 32, 32]
    return images, torch.tensor(dataset.targets)


def _normalize(images: Tensor) -> Tensor:
    mean, std = (torch.tensor(channels, device=images.device).view(3, 1, 1) for channels in (_MEAN, _STD))
    return (images / 255 - mean) / std
