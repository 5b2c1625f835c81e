"""imagenet-vit: ImageNet, or any image data set with the same layout."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError
from tasks.data.image_shards import LISTING, shard_source
from tasks.data.image_sources import NAMES, ImageSource, image_source
from tasks.data.image_splits import ImageSplits, Transform
from tasks.data.splits import Augment
from tasks.input_formats import ImageInputs, InputFormat
from tasks.recipes.settings import NonNegativeInt, UnitInterval
from tasks.vision.task import MixRecipe, ViTTask, mix

_IMAGENET = 1000
"""Number of ImageNet classes."""

_CROP = 0.875

_TOKENS = ("first", "positions", "cls_token", "pos_embed", "patch_pos", "pixel_pos")
"""Class tokens and learned positions, by our and timm's names. DeiT, XCiT, TNT and VOLO do not decay them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageNetRecipe(MixRecipe):
    """Training with timm's random crops, color augmentation and random erasing.

    Attributes:
        recolour: timm's name of an augmentation policy (RandAugment, Cubuk et al., 2020); "" for slight color jitter.
        erasing: Probability of random erasing (Zhong et al., 2020).
        loaders: Processes that read images; results do not depend on their number.
    """

    without_decay: tuple[str, ...] = _TOKENS
    recolour: str = ""
    erasing: UnitInterval = 0.0
    loaders: NonNegativeInt = 8


class ImageNetViT(ViTTask):
    """Image classification at 224 x 224, with as many classes as the data has.

    `--data` is one of:

    * a folder with train/ and validation/ (or val/), each with a folder for each class, or as tar files of such
      folders;
    * a folder of webdataset shards of ImageNet's 1,000 classes, with timm's _info.json;
    * "hfds/NAME", a Hugging Face data set with these splits.

    The published validation split is the test split. Validation is 5 % of train, at most 10,000 images.

    The base is ViT-S/16. "paper" is DeiT's recipe (Touvron et al., 2021, table 9) without repeated augmentation.
    "proxy" takes minutes on a GPU.
    """

    name = "imagenet-vit"
    version = 1
    base = Architecture(depth=12, width=384, heads=6, head_dim=64, hidden=1536)
    image = (3, 224, 224)
    patch = 16
    presets = {  # noqa: RUF012  # Task declares it a ClassVar
        "smoke": ImageNetRecipe(steps=3, batch=4, lr=1e-3, measured=8, reports=2, loaders=0),
        "proxy": ImageNetRecipe(
            steps=2000, batch=256, lr=1e-3, label_smoothing=0.1, precision="bf16-mixed", measured=10_000
        ),
        "paper": ImageNetRecipe(
            epochs=300,
            batch=1024,
            lr=1e-3,  # 5e-4 per 512 examples of the batch
            warmup=5 / 300,
            floor=0.01,
            clip=0.0,
            label_smoothing=0.1,
            drop_path=0.1,
            mixup=0.8,
            cutmix=1.0,
            recolour="rand-m9-mstd0.5-inc1",
            erasing=0.25,
            precision="bf16-mixed",
            loaders=16,
        ),
    }

    @property
    def classes(self) -> int:  # type: ignore[override]
        """Number of classes of the training images; ImageNet's 1,000 without data."""
        if self.data is None:
            return _IMAGENET
        splits = self.splits
        assert isinstance(splits, ImageSplits)
        return splits.classes

    def input_format(self) -> InputFormat:
        return ImageInputs(channels=3, height=224, width=224, crop=_CROP)

    def preprocess(self, inputs: Tensor) -> Tensor:
        """Standardize bytes as timm's transforms do."""
        from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD  # takes three seconds

        channels = (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD)
        mean, std = (torch.tensor(values, device=inputs.device).view(3, 1, 1) for values in channels)
        return (inputs / 255 - mean) / std

    def class_names(self) -> tuple[str, ...]:
        """Return the names of the folders, or the numbers of shards; none without data."""
        if self.data is None:
            return ()
        splits = self.splits
        assert isinstance(splits, ImageSplits)
        return tuple(sorted(splits.train.classes, key=lambda name: splits.train.classes[name]))

    def load(self) -> ImageSplits:
        """Find the images; they are read on demand.

        Raises:
            UserError: No data was given, a split is missing, or the splits have different classes.
        """
        if self.data is None:
            message = f"task {self.name!r} has no built-in data. Give --data FOLDER with train/ and validation/."
            raise UserError("missing-data", message, option="--data", task=self.name)
        from timm.data import create_transform  # takes three seconds

        plain = create_transform(224, interpolation="bicubic", crop_pct=_CROP)
        train, test = (_images(self.data, split) for split in NAMES)
        if train.classes != test.classes:
            message = f"train and validation of {str(self.data)!r} must have the same classes (folder names)."
            raise UserError("mismatch", message, option="classes", path=str(self.data))
        if len(train.images) < 2:
            message = f"train of {str(self.data)!r} must contain at least 2 images, some for validation, got 1."
            raise UserError("missing-data", message, path=str(self.data), images=1, least=2)
        held_out = min(10_000, -(-len(train.images) // 20))
        return ImageSplits(train, test, held_out, _train_transform, plain, _mix_augment(len(train.classes)))


def _images(data: Path, split: str) -> ImageSource:
    in_shards = (data / LISTING).exists()
    return shard_source(data, NAMES[split], _IMAGENET) if in_shards else image_source(data, split)


def _train_transform(recipe: ImageNetRecipe) -> Transform:
    from timm.data import create_transform
    from timm.data.auto_augment import RandAugment, posterize

    transform = create_transform(
        224,
        is_training=True,
        auto_augment=recipe.recolour or None,
        re_prob=recipe.erasing,
        re_mode="pixel",
        interpolation="bicubic",
    )
    operations = [op for step in transform.transforms if isinstance(step, RandAugment) for op in step.ops]
    for operation in operations:
        if operation.aug_fn is posterize:
            operation.aug_fn = _posterize
    return transform  # type: ignore[no-any-return]  # timm is untyped


def _posterize(image: Image.Image, bits: int, **settings: Any) -> Image.Image:
    """timm's posterize, keeping at least one bit: timm's highest level keeps none, which Pillow 13 rejects."""
    from timm.data.auto_augment import posterize

    return posterize(image, max(1, bits), **settings)  # type: ignore[no-any-return]  # timm is untyped


def _mix_augment(classes: int) -> Augment:
    return lambda batch, recipe, generator: mix(batch, recipe, classes, generator)
