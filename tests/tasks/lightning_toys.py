"""Fast LightningModules and data of all kinds, and their tasks."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import lightning as L
import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, random_split

from search_spaces.architecture.architecture import Architecture
from tasks.adapters.lightning_module import LightningRecipe, LightningTask
from tasks.base import Metric


def points(examples: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(examples, 4, generator=torch.Generator().manual_seed(1))
    return x, x.sum(dim=1).sin()


class Net(L.LightningModule):
    """Dropout, ReduceLROnPlateau, and hyperparameters that are no plain values."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.save_hyperparameters()
        width = architecture.width
        layers = [part for _ in range(architecture.depth) for part in (nn.Linear(width, width), nn.Tanh())]
        self.net = nn.Sequential(nn.Linear(4, width), *layers, nn.Dropout(0.2), nn.Linear(width, 1))
        self.example_input_array = torch.zeros(1, 4)
        self.calls: list[str] = []

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(x)[:, 0]
        return out

    def off(self, batch: Any) -> Tensor:
        return (self(batch[0]) - batch[1]).square()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.off(batch).mean()

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("val_loss", self.off(batch).mean())

    def test_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("test_loss", self.off(batch).mean())

    def on_train_epoch_end(self) -> None:
        self.calls.append("train epoch")

    def on_validation_epoch_end(self) -> None:
        self.calls.append("validation epoch")

    def on_after_backward(self) -> None:
        self.calls.append("backward")

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), lr=0.03)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5, threshold=0.2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss"}}


class ByHand(Net):
    """Two optimizers with manual optimization."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        self.automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> None:
        for optimizer in self.optimizers():  # type: ignore[union-attr]
            optimizer.zero_grad()
            self.manual_backward(self.off(batch).mean())
            optimizer.step()

    def configure_optimizers(self) -> Any:
        first, *others = self.net.children()
        parts = [first.parameters(), nn.ModuleList(others).parameters()]
        return [torch.optim.Adam(part, lr=0.03) for part in parts]


class Eachwise(Net):
    """Returns errors per example, and logs its own standard error in test."""

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        return {"val_loss": self.off(batch)}

    def test_step(self, batch: Any, batch_idx: int) -> Any:
        self.log_dict({"test_loss": self.off(batch).mean(), "test_loss_se": 0.25})

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=0.03)


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Draws from all random generators."""

    def __init__(self, examples: int) -> None:
        self.x, self.y = points(examples)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index] + 0.1 * torch.randn(4) + random.random() + float(np.random.rand()), self.y[index]


class Stream(IterableDataset[tuple[Tensor, Tensor]]):
    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        x, y = points(64)
        return iter([(x[i], y[i]) for i in torch.randperm(64).tolist()])


class Points(L.LightningDataModule):
    """Random splits in eight shuffled batches per epoch."""

    def setup(self, stage: str) -> None:
        self.train, self.val, self.test = random_split(TensorDataset(*points(104)), [64, 20, 20])

    def train_dataloader(self) -> Any:
        return DataLoader(self.train, 8, shuffle=True)

    def val_dataloader(self) -> Any:
        return DataLoader(self.val, 8)

    def test_dataloader(self) -> Any:
        return DataLoader(self.test, 8)


class NoisyPoints(Points):
    def train_dataloader(self) -> Any:
        return DataLoader(Noisy(64), 8, shuffle=True)


class OwnGenerator(Points):
    def train_dataloader(self) -> Any:
        return DataLoader(self.train, 8, shuffle=True, generator=torch.Generator().manual_seed(7))


class StreamPoints(Points):
    def train_dataloader(self) -> Any:
        return DataLoader(Stream(), 8)


class InAnotherProcess(Points):
    def train_dataloader(self) -> Any:
        return DataLoader(Noisy(64), 8, shuffle=True, num_workers=1)


class Two(Points):
    """A loader of eight batches and one of three, which restarts."""

    def train_dataloader(self) -> Any:
        return {"long": DataLoader(self.train, 8, shuffle=True), "short": DataLoader(Noisy(24), 8, shuffle=True)}


class OfTwo(Net):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.off(batch["long"]).mean() + self.off(batch["short"]).mean()


class Toy(LightningTask):
    name = "toy-lightning"
    version = 1
    metrics = (Metric("loss", "squared", "min"),)
    base = Architecture(depth=1, width=8, hidden=8)
    presets: Mapping[str, Any] = {
        "smoke": LightningRecipe(max_epochs=3, val_check_interval=0.5),
        "proxy": LightningRecipe(max_epochs=3),
    }
    of: type[L.LightningModule] = Net
    data_of: type[L.LightningDataModule] = Points

    def module(self, architecture: Architecture) -> L.LightningModule:
        return self.of(architecture)

    def data_module(self, recipe: Any) -> L.LightningDataModule:
        return self.data_of()


def toy(of: type[L.LightningModule] = Net, data_of: type[L.LightningDataModule] = Points, **options: Any) -> Toy:
    """A task with this module and data and these Trainer options."""

    class Variant(Toy):
        def trainer_options(self, recipe: Any) -> dict[str, Any]:
            return {**super().trainer_options(recipe), **options}

    Variant.of, Variant.data_of = of, data_of
    return Variant()
