"""Overhead of a search beyond its trainings, and start-up time of commands.

A search of digits-vit runs in this process. Then a handwritten PyTorch loop trains the same architectures for the same
steps on the same batches, and also keeps freed memory. Ratios are taken seed by seed. The search also counts, proposes,
stores, trains baselines, evaluates during training and prints its table and plot.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import nas
from benchmarks.form import Figure, main
from nas.workers.local_processes import SingleProcessPool
from nas.workers.resources import Resources
from search_spaces.architecture.architecture import Architecture
from tasks.training.allocator import keep_freed_memory
from tasks.vision.digits import DigitsRecipe, DigitsViT

COLD = 7  # starts of a command, of which the median is taken


def search_seconds(folder: str, preset: str, trials: int, seed: int) -> tuple[float, list[Architecture]]:
    """Return the seconds of a whole search, and its architectures."""
    began = time.perf_counter()
    study = nas.search(
        "digits-vit",
        budget="params<=100k",
        objectives="accuracy,flops",
        trials=trials,
        preset=preset,
        seed=seed,
        resources=Resources(1),
        study=f"seed-{seed}",
        storage=f"sqlite:///{folder}/studies.db",
    )
    study.plot(Path(folder, "front.png"))
    seconds = time.perf_counter() - began
    return seconds, [row.architecture for row in study.rows()]


def bare_seconds(task: DigitsViT, recipe: DigitsRecipe, architectures: list[Architecture]) -> float:
    """Return the seconds of loops that train and evaluate the same architectures on one thread."""
    began = time.perf_counter()
    for architecture in architectures:
        with keep_freed_memory():  # as trainings of a search do
            train_bare(task, recipe, architecture)
    return time.perf_counter() - began


def train_bare(task: DigitsViT, recipe: DigitsRecipe, architecture: Architecture) -> None:
    """Train and evaluate with a plain loop."""
    torch.manual_seed(0)
    model = task.build(architecture)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True)
    steps = recipe.total_steps(task.splits.num_examples)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.lr, total_steps=steps)
    batches = task.splits.training_batches(recipe, 0, (), torch.device("cpu"))
    for (images, labels), _ in islice(batches, steps):
        loss = F.cross_entropy(model(images), labels, label_smoothing=recipe.label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        model.eval()
        for part in (task.splits.validation, task.splits.test):
            (model(task.splits.encode(part[0])).argmax(1) == part[1]).float().mean().item()


def search_over_bare(quick: bool) -> float:
    """Return the median ratio over seeds."""
    task, preset, trials = DigitsViT(), "smoke" if quick else "proxy", 3 if quick else 8
    torch.set_num_threads(1)
    bare_seconds(task, task.presets["smoke"], [task.base])  # warms up the process
    ratios = []
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for seed in range(2 if quick else 3):
            search_s, architectures = search_seconds(folder, preset, trials, seed)
            ratios.append(search_s / bare_seconds(task, task.presets[preset], architectures))
    return statistics.median(ratios)


def cold_over(other: str, start: Callable[[], float]) -> float:
    """Return the median ratio of a start's time to Python's that runs `other`, in turns."""
    return statistics.median(start() / _wall([sys.executable, "-c", other]) for _ in range(COLD))


def imports_torch(command: list[str]) -> int:
    """Return 1 if the command imports torch, else 0."""
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(any(line.rpartition("|")[2].strip() == "torch" for line in done.stderr.splitlines()))


def worker_ready() -> float:
    """Return the seconds until a new worker process has done an empty job."""
    began = time.perf_counter()
    pool = SingleProcessPool(slot=0, memory=None, gpus=None).pool
    pool.submit(os.getpid).result()
    seconds = time.perf_counter() - began
    pool.shutdown(wait=True)
    return seconds


def _wall(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def starts(folder: str) -> dict[str, Figure]:
    """Measure start-up times of commands, relative to Python that does nothing, or that imports torch."""
    nas = str(Path(sys.executable).with_name("nas"))
    query = [nas, "results", "--storage", f"sqlite:///{folder}/studies.db"]
    over_python = {"help": [nas, "--help"], "results": query}
    over_torch = {
        "help": ([nas, "--help"], 0.15),
        "list": ([nas, "list"], 0.5),
        "list_presets": ([nas, "list", "presets"], 0.5),
        "results": (query, 0.5),
        "cost_digits_vit": ([nas, "cost", "digits-vit"], 1.5),
        "cost_c4_lm": ([nas, "cost", "c4-lm"], 1.5),
    }
    return {
        **{
            f"{name}_seconds_over_python": Figure(cold_over("pass", partial(_wall, command)), "ratio", "lower")
            for name, command in over_python.items()
        },
        **{
            f"{name}_over_torch": Figure(cold_over("import torch", partial(_wall, command)), "ratio", "lower", target)
            for name, (command, target) in over_torch.items()
        },
        "worker_over_torch": Figure(cold_over("import torch", worker_ready), "ratio", "lower", target=1.3),
        "imports_torch": Figure(max(map(imports_torch, over_python.values())), "0 or 1", "lower", target=0),
    }


def figures(quick: bool) -> dict[str, Figure]:
    """Measure start-up times, on a study of a small search, and a search's overhead."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        search_seconds(folder, "smoke", 2, 0)
        began = starts(folder)
    return {"search_over_bare": Figure(search_over_bare(quick), "ratio", "lower", target=1.10), **began}


if __name__ == "__main__":
    main("overhead", figures)
