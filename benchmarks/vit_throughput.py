"""Images per second of a vision task's training, beside a bare PyTorch loop around timm's ViT of the same shape.

Both train on the same augmented batches with the same optimiser and clipping, in turns; the ratio is taken turn by
turn. digits-vit trains on the CPU, with one thread here, in fp32.
"""

import statistics
import time
from dataclasses import replace
from itertools import islice

import torch
import torch.nn.functional as F
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from benchmarks.form import Figure, main
from search_spaces.architecture import Architecture
from tasks.digits import DigitsViT
from tasks.run import Run

SHAPES = {
    "digits": DigitsViT.base,
    "wide": Architecture(depth=6, width=128, heads=4, head_dim=32, hidden=512),
}


class TimedDigits(DigitsViT):
    """digits-vit for a few epochs."""

    presets = {"timed": replace(DigitsViT.presets["proxy"], epochs=6, reports=1)}  # noqa: RUF012


def task_speed(task: TimedDigits, shape: Architecture) -> float:
    """Images per second of the task's own `fit`, from its call to its end."""
    recipe = task.presets["timed"]
    began = time.perf_counter()
    task.fit(Run(architecture=shape, recipe=task.presets["timed"], seed=0))
    return recipe.total_steps(task.splits.examples) * recipe.batch / (time.perf_counter() - began)


def reference_speed(task: TimedDigits, shape: Architecture) -> float:
    """Images per second of a bare loop around timm's model, which measures as often as the task does."""
    recipe = task.presets["timed"]
    began = time.perf_counter()
    model = VisionTransformer(
        img_size=8,
        patch_size=2,
        in_chans=1,
        num_classes=10,
        embed_dim=shape.width,
        depth=shape.depth,
        num_heads=shape.heads,
        mlp_ratio=shape.hidden / shape.width,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True)
    steps = recipe.total_steps(task.splits.examples)
    for (images, labels), _ in islice(task.splits.training(recipe, 0, (), torch.device("cpu")), steps):
        loss = F.cross_entropy(model(images), labels, label_smoothing=recipe.label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
    with torch.no_grad():
        model.eval()
        for part in (task.splits.validation, task.splits.validation, task.splits.test):
            (model(task.splits.encode(part[0])).argmax(1) == part[1]).float().mean().item()
    return steps * recipe.batch / (time.perf_counter() - began)


def figures(quick: bool) -> dict[str, Figure]:
    """The task and the loop in turns, at each shape."""
    torch.set_num_threads(1)
    task = TimedDigits()
    found = {}
    for name, shape in SHAPES.items():
        task_speed(task, shape), reference_speed(task, shape)  # warm
        ours, theirs = [], []
        for _ in range(3 if quick else 9):
            ours.append(task_speed(task, shape))
            theirs.append(reference_speed(task, shape))
        ratio = statistics.median(our / their for our, their in zip(ours, theirs, strict=True))
        suffix = "" if name == "digits" else f"_{name}"
        found[f"images_over_reference{suffix}"] = Figure(ratio, "ratio", "higher", target=1.0)
        peers = {"bare loop, timm": statistics.median(theirs)}
        found[f"images_per_second{suffix}"] = Figure(statistics.median(ours), "images/s", "higher", peers=peers)
    return found


if __name__ == "__main__":
    main("vit_throughput", figures)
