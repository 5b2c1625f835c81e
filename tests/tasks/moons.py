"""moons: which of two interleaved crescents is a point on?

This file is a complete task. Change one part at a time, and run these again:

    python moons.py  # checks the contract of tasks
    nas search moons.py:Moons --trials 8

Shapes: B = batch, E = examples, D = width.
"""

from collections import OrderedDict

import torch
from sklearn.datasets import make_moons
from torch import Tensor, nn

from search_spaces import Architecture, Norm, Site, build_stack
from tasks import Batch, ClassificationTask, Recipe, TensorSplits


class Layer(nn.Sequential):
    """A block of one layer, [B, D] to [B, D]. The topology adds the skip connection around it."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__(nn.LayerNorm(width), nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.site = Site(("x",), width, starts_block=True, norms_input=True)  # one input, "x", which it normalizes


class Moons(ClassificationTask):  # has accuracy and loss; for other metrics use SupervisedTask
    """A residual multilayer perceptron for points in the plane, with any topology."""

    name = "moons"  # the task's name in results
    # Increase it when data, metrics or network change: results of different versions are never compared.
    version = 1
    base = Architecture(depth=4, width=16, hidden=32)  # the architecture that search spaces vary
    presets = {  # noqa: RUF012  # how to train; smoke takes seconds, proxy is the default
        "smoke": Recipe(epochs=2, batch=50, lr=0.01),
        "proxy": Recipe(epochs=10, batch=50, lr=0.01),
    }

    def load(self) -> TensorSplits:
        """Draw the points. A task with files reads them from `self.data`, the value of --data."""
        return TensorSplits(train=points(1000, 1), validation=points(500, 2), test=points(500, 3))

    def build(self, architecture: Architecture) -> nn.Module:
        """Return a network from points [B, 2] to class scores [B, 2]. It must not need the data or name a device."""
        width = architecture.width
        layers = [Layer(width, architecture.hidden) for _ in range(architecture.depth)]
        stack = build_stack(architecture, layers, Norm("layer", 1e-6), num_embeddings=1)
        return nn.Sequential(OrderedDict(embedding=nn.Linear(2, width), stack=stack, head=nn.Linear(width, 2)))

    def example(self) -> tuple[Tensor, ...]:
        """Return one example, with which costs are counted."""
        return (torch.zeros(1, 2),)


def points(examples: int, seed: int) -> Batch:
    """Draw points [E, 2] and their crescents [E]. Each split has its own seed, so splits share no points."""
    inputs, targets = make_moons(examples, noise=0.2, random_state=seed)
    return torch.tensor(inputs, dtype=torch.float32), torch.tensor(targets)


if __name__ == "__main__":
    from tasks import check_task

    check_task(Moons())
