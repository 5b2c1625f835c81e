"""A task of another package: is a point on a black or a white stripe?"""

import torch
from torch import Generator, Tensor, nn

from search_spaces import Architecture
from tasks import Batch, ClassificationTask, Recipe, TensorSplits


class Stripes(ClassificationTask):
    """Numbers on a line and a multilayer perceptron without topologies."""

    name = "stripes"
    version = 3
    base = Architecture(depth=1, width=16, hidden=16)
    presets = {"smoke": Recipe(steps=20, batch=32, lr=0.01), "proxy": Recipe(epochs=10, batch=32, lr=0.01)}  # noqa: RUF012

    def load(self) -> TensorSplits:
        return TensorSplits(train=numbers(512, 1), validation=numbers(128, 2), test=numbers(128, 3))

    def build(self, architecture: Architecture) -> nn.Module:
        """Numbers [B, 1] to class scores [B, 2]."""
        hidden = [nn.Sequential(nn.Linear(16, 16), nn.GELU()) for _ in range(architecture.depth)]
        return nn.Sequential(nn.Linear(1, 16), nn.GELU(), *hidden, nn.Linear(16, 2))

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, 1),)


def numbers(examples: int, seed: int) -> Batch:
    """Numbers [E, 1] and their stripes' colors [E]."""
    x = 4 * torch.rand(examples, 1, generator=Generator().manual_seed(seed))
    return x, x[:, 0].long() % 2
