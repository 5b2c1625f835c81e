"""One training run as Lightning sees it: the passes, the measurements on the way, the checkpoint."""

import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.optim import AdamW, Optimizer

from search_spaces.checkpoint import atomic_replace
from search_spaces.errors import Notice
from search_spaces.layers.stack import Stack
from search_spaces.topologies.decay import split_by_decay
from tasks.base import Diverged, Report
from tasks.recipe import Recipe
from tasks.splits import Batch, DataPosition, Splits, derived_seed

if not torch.cuda.is_available():
    # Lightning makes torch ask NVML whether there is a GPU; without one, every optimiser step looks for NVML again.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "0"

_CHECKPOINT_S = 60.0
_LOOK_EVERY = 20  # passes between looks at the loss: a look waits for the accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one training run is made of.

    Attributes:
        splits: The examples.
        recipe: The settings.
        seed: Of every draw.
        loss: Outputs and targets of a batch to the mean loss, [].
        measure: The network to its validation metrics.
        report: Where those go.
        identity: All that its numbers depend on, in words.
        checkpoint: The file that an interrupted run is continued from, or None.
    """

    splits: Splits
    recipe: Recipe
    seed: int
    loss: Callable[[Tensor, Tensor], Tensor]
    measure: Callable[[nn.Module], Mapping[str, float]]
    report: Report
    identity: str
    checkpoint: Path | None


class Run(LightningModule):
    """Trains one network.

    Every pass draws from generators seeded by the run's seed and the pass, so that a run which was
    interrupted ends with the numbers it would have had.
    """

    def __init__(self, model: nn.Module, job: Job) -> None:
        super().__init__()
        self.model = model
        self.job = job
        self.steps = job.recipe.total_steps(job.splits.examples)
        self.curve: list[tuple[int, dict[str, float]]] = []
        self.start = 0  # the pass that a continued run stands at
        self.progress: DataPosition = ()  # and how far it has come in its data
        self._loss_sum = torch.zeros(())
        self._saved_at = time.monotonic()

    def configure_model(self) -> None:
        """Shard the weights, layer by layer, where the strategy shares them among processes (FSDP2)."""
        if self.device_mesh is None or isinstance(self.model, FSDPModule):
            return
        mesh = self.device_mesh["data_parallel"]
        for module in self.model.modules():
            if isinstance(module, Stack):
                for layer in module.layers:
                    fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)

    def train_dataloader(self) -> "Passes":
        """The batches of the whole training: Lightning sees one long epoch."""
        return Passes(self)

    def configure_optimizers(self) -> Optimizer:
        """AdamW; see `split_by_decay` for what it decays."""
        recipe = self.job.recipe
        decayed, exempt = split_by_decay(self.model)
        groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": exempt, "weight_decay": 0.0}]
        return AdamW(groups, lr=recipe.lr, betas=recipe.betas, fused=True)

    def training_step(self, given: tuple[Batch, DataPosition], index: int) -> Tensor:
        """One pass, forward."""
        self._seed_draws(index)
        (inputs, targets), self.progress = given
        loss = self.job.loss(self.model(inputs), targets)
        self._loss_sum = self._loss_sum + loss.detach()
        return loss

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Nothing: splits give batches where they are needed."""
        return batch

    def configure_gradient_clipping(
        self, optimizer: Optimizer, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Called before each optimiser step: clip, and set its learning rate."""
        recipe = self.job.recipe
        if recipe.clip:
            nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], recipe.clip)
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate(self.global_step, self.steps)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Look at the loss; after an optimiser step, measure or save where that is due."""
        passes = batch_idx + 1
        if passes % _LOOK_EVERY == 0:
            self._check_loss()
        if passes % self.job.recipe.accumulate:
            return
        if self.global_step in self.job.recipe.report_steps(self.steps):
            self._check_loss()
            self.curve.append((self.global_step, dict(self.job.measure(self.model))))
            self.job.report(*self.curve[-1])
        if self.job.checkpoint is not None and self._due():
            self._save(self.job.checkpoint)

    def on_train_end(self) -> None:
        """Look at the loss of the last passes."""
        self._check_loss()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep beside the weights what they are of, and the curve."""
        checkpoint["run"], checkpoint["curve"] = self.job.identity, self.curve
        checkpoint["progress"] = self.progress

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Say again what the interrupted run had reported, and go on at its pass."""
        self.start = checkpoint["global_step"] * self.job.recipe.accumulate
        self.progress = checkpoint["progress"]
        for step, metrics in checkpoint["curve"]:
            self.curve.append((step, metrics))
            self.job.report(step, metrics)

    def _seed_draws(self, index: int) -> None:
        """Seed what dropout draws from; torch.manual_seed takes a hundred times as long, for every kind of device."""
        seed = derived_seed(self.job.seed, "network", index)
        if self.device.type == "cuda":
            torch.cuda.default_generators[self.device.index or 0].manual_seed(seed)
        torch.default_generator.manual_seed(seed)

    def _due(self) -> bool:
        """Whether it is time for a checkpoint; processes that train together must agree."""
        return bool(self.trainer.strategy.broadcast(time.monotonic() - self._saved_at > _CHECKPOINT_S))

    def _check_loss(self) -> None:
        # A sum that something not finite went into is not finite ever after.
        if not torch.isfinite(self.trainer.strategy.reduce(self._loss_sum)):
            raise Diverged(f"the loss is not finite, at step {self.global_step} of {self.steps}")

    def _save(self, path: Path) -> None:
        """Write whole or not at all: a machine may stop at any moment."""
        partial = path.with_suffix(".partial")
        self.trainer.save_checkpoint(partial)
        if self.trainer.is_global_zero:
            atomic_replace(partial, path)
        self._saved_at = time.monotonic()


@dataclass(frozen=True, slots=True)
class Passes:
    """The batches of a whole training, from the pass that its run stands at."""

    run: Run

    def __len__(self) -> int:
        return self.run.steps * self.run.job.recipe.accumulate

    def __iter__(self) -> Iterator[tuple[Batch, DataPosition]]:
        run, job, trainer = self.run, self.run.job, self.run.trainer
        own = slice(trainer.global_rank, None, trainer.world_size)  # of the examples of a pass, all of them if alone
        passes = job.splits.training(job.recipe, job.seed, run.progress, run.device)
        for (inputs, targets), progress in islice(passes, len(self) - run.start):
            yield (inputs[own], targets[own]), progress


def found(job: Job) -> Path | None:
    """The checkpoint to go on from, where there is one that can be read and is of this very run."""
    return None if kept_state(job.checkpoint, job.identity, "meta") is None else job.checkpoint


def kept_state(path: Path | None, identity: str, device: str) -> dict[str, Any] | None:
    """What an interrupted run left in a file, where that can be read and its "run" is of this identity; else None."""
    if path is None or not path.is_file():
        return None
    try:
        kept: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        return kept if kept["run"] == identity else None
    except (RuntimeError, EOFError, KeyError, pickle.UnpicklingError) as error:
        warnings.warn(f"{path} cannot be read ({type(error).__name__}); the training starts anew.", Notice, 2)
        return None
