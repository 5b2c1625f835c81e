"""Images per second of a vision task's training, relative to a bare PyTorch loop around timm's ViT of the same shape.

Both train with the same optimizer and clipping, alternately; the ratio is taken turn by turn. digits-vit uses the same
augmented batches in both. For imagenet-vit, synthetic JPEG files are read by timm's `create_loader` in the loop and by
the task's own loader, with one reading process each. On one CPU thread in fp32.
"""

import statistics
import time
from dataclasses import replace
from itertools import chain, islice, repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from timm.data import create_dataset, create_loader
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.optim import Optimizer

from benchmarks.clock import WARM, Clock
from benchmarks.form import Figure, main
from search_spaces.architecture.architecture import Architecture
from tasks.recipes.recipe import Recipe
from tasks.run import Run
from tasks.training.allocator import keep_freed_memory
from tasks.vision.digits import DigitsViT
from tasks.vision.imagenet import ImageNetRecipe, ImageNetViT

SHAPES = {
    "digits": DigitsViT.base,
    "wide": Architecture(depth=6, width=128, heads=4, head_dim=32, hidden=512),
}


class TimedDigits(DigitsViT):
    """digits-vit for a few epochs."""

    presets = {"timed": replace(DigitsViT.presets["proxy"], epochs=6, reports=1)}  # noqa: RUF012


def bare(shape: Architecture, recipe: Recipe, **images: int) -> tuple[VisionTransformer, Optimizer]:
    """Return timm's model for such images, and its optimizer."""
    model = VisionTransformer(
        embed_dim=shape.width,
        depth=shape.depth,
        num_heads=shape.heads,
        mlp_ratio=shape.hidden / shape.width,
        **images,
    )
    decay = recipe.weight_decay
    return model, torch.optim.AdamW(model.parameters(), lr=recipe.lr, weight_decay=decay, fused=True)


def learn(model: nn.Module, optimizer: Optimizer, outputs: Tensor, labels: Tensor, recipe: Recipe) -> None:
    """Run a training step, given the outputs of the forward pass."""
    loss = F.cross_entropy(outputs, labels, label_smoothing=recipe.label_smoothing)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    optimizer.step()


def task_speed(task: TimedDigits, shape: Architecture) -> float:
    """Return images per second of the task's whole `fit`."""
    recipe = task.presets["timed"]
    began = time.perf_counter()
    task.fit(Run(architecture=shape, recipe=task.presets["timed"], seed=0))
    return recipe.total_steps(task.splits.num_examples) * recipe.batch / (time.perf_counter() - began)


def reference_speed(task: TimedDigits, shape: Architecture) -> float:
    """Return images per second of a bare loop around timm's model, with as many evaluations as the task."""
    recipe = task.presets["timed"]
    began = time.perf_counter()
    model, optimizer = bare(shape, recipe, img_size=8, patch_size=2, in_chans=1, num_classes=10)
    steps = recipe.total_steps(task.splits.num_examples)
    for (images, labels), _ in islice(task.splits.training_batches(recipe, 0, (), torch.device("cpu")), steps):
        learn(model, optimizer, model(images), labels, recipe)
    with torch.no_grad():
        model.eval()
        for part in (task.splits.validation, task.splits.validation, task.splits.test):
            (model(task.splits.encode(part[0])).argmax(1) == part[1]).float().mean().item()
    return steps * recipe.batch / (time.perf_counter() - began)


class TimedFiles(ImageNetViT):
    """imagenet-vit for some steps of small batches."""

    presets = {  # noqa: RUF012
        "timed": ImageNetRecipe(steps=WARM + 20, batch=32, lr=1e-3, measured=1, reports=1, loaders=1, accelerator="cpu")
    }

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.clock = Clock(self.presets["timed"].steps)

    def loss(self, outputs: Tensor, targets: Tensor, recipe: ImageNetRecipe) -> Tensor:
        """Return the task's loss; each step calls it once, which the clock counts."""
        self.clock.tick()
        return super().loss(outputs, targets, recipe)


def write_images(folder: Path, each: int) -> None:
    """Write JPEG files of smooth noise, 400 x 300, in two classes."""
    draw = np.random.default_rng(0)
    for split, number in (("train", each), ("validation", 4)):
        for label in ("one", "other"):
            (folder / split / label).mkdir(parents=True)
            for n in range(number):
                coarse = Image.fromarray(draw.integers(256, size=(30, 40, 3), dtype=np.uint8))
                coarse.resize((400, 300), Image.Resampling.BICUBIC).save(folder / split / label / f"{n}.jpg")


def files_speed(task: TimedFiles, shape: Architecture) -> float:
    """Return images per second of the task's `fit`."""
    recipe = task.presets["timed"]
    task.clock = Clock(recipe.steps)
    task.fit(Run(architecture=shape, recipe=recipe, seed=0))
    return task.clock.passes_per_second() * recipe.batch


def timm_speed(folder: Path, recipe: ImageNetRecipe, shape: Architecture) -> float:
    """Return images per second of a bare loop around timm's model and loader."""
    model, optimizer = bare(shape, recipe, num_classes=2)
    images = create_dataset("", root=str(folder), split="train")
    loader = create_loader(
        images,
        (3, 224, 224),
        recipe.batch,
        is_training=True,
        interpolation="bicubic",
        num_workers=recipe.loaders,
        use_prefetcher=False,
        device=torch.device("cpu"),
    )
    clock, batches = Clock(recipe.steps), chain.from_iterable(repeat(loader))
    for inputs, labels in islice(batches, recipe.steps):
        outputs = model(inputs)
        clock.tick()
        learn(model, optimizer, outputs, labels, recipe)
    return clock.passes_per_second() * recipe.batch


def of_files(quick: bool) -> dict[str, Figure]:
    """Measure imagenet-vit and timm alternately, on a network so small that it waits for images."""
    shape, ours, theirs = Architecture(depth=2, width=64, heads=2, head_dim=32, hidden=256), [], []
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_images(folder, 400)
        task = TimedFiles(folder)
        for _ in range(2 if quick else 7):
            ours.append(files_speed(task, shape))
            with keep_freed_memory():  # as trainings do
                theirs.append(timm_speed(folder, task.presets["timed"], shape))
    ratio = statistics.median(our / their for our, their in zip(ours, theirs, strict=True))
    peers = {"bare loop, timm and its loader": statistics.median(theirs)}
    return {
        "images_over_reference_files": Figure(ratio, "ratio", "higher", target=1.0),
        "images_per_second_files": Figure(statistics.median(ours), "images/s", "higher", peers=peers),
    }


def figures(quick: bool) -> dict[str, Figure]:
    """Measure each task and its loop alternately, digits-vit at each shape."""
    torch.set_num_threads(1)
    task = TimedDigits()
    figures_by_name = {}
    for name, shape in SHAPES.items():
        task_speed(task, shape), reference_speed(task, shape)  # warm-up
        ours, theirs = [], []
        for _ in range(3 if quick else 9):
            ours.append(task_speed(task, shape))
            with keep_freed_memory():  # as trainings do
                theirs.append(reference_speed(task, shape))
        ratio = statistics.median(our / their for our, their in zip(ours, theirs, strict=True))
        suffix = "" if name == "digits" else f"_{name}"
        figures_by_name[f"images_over_reference{suffix}"] = Figure(ratio, "ratio", "higher", target=1.0)
        peers = {"bare loop, timm": statistics.median(theirs)}
        figures_by_name[f"images_per_second{suffix}"] = Figure(
            statistics.median(ours), "images/s", "higher", peers=peers
        )
    return figures_by_name | of_files(quick)


if __name__ == "__main__":
    main("vit_throughput", figures)
