"""new-task: which of two interleaved crescents is a point on?

A task to start from, complete as it is: `python new_task.py` tries what every task owes, and
`nas search new_task.py:NewTask --trials 8` searches it. Change one part after the other, and try again.

Shapes: B = batch, E = examples, D = width.
"""

from collections import OrderedDict

import torch
from sklearn.datasets import make_moons
from torch import Tensor, nn

from search_spaces import Architecture, Norm, Site, build_stack
from tasks import Batch, ClassificationTask, Recipe, TensorSplits


class Layer(nn.Sequential):
    """What a topology wires: a block of one layer, [B, D] to [B, D]. The skip around it is the topology's."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__(nn.LayerNorm(width), nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.site = Site(("x",), width, starts_block=True, norms_input=True)  # meets the residual stream, and norms it


class NewTask(ClassificationTask):  # its metrics are accuracy and loss; SupervisedTask is for others
    """A residual multilayer perceptron, wired by any topology."""

    name = "new-task"  # what it is called in results
    # Another one whenever data, metrics or network change: results of two are never compared.
    version = 1
    base = Architecture(depth=4, width=16, hidden=32)  # what search spaces are laid out around
    presets = {  # noqa: RUF012  # how to train; smoke takes seconds, proxy is the default
        "smoke": Recipe(epochs=2, batch=50, lr=0.01),
        "proxy": Recipe(epochs=10, batch=50, lr=0.01),
    }

    def load(self) -> TensorSplits:
        """Draw the points; a task with files would read them from `self.data`, which is --data."""
        return TensorSplits(train=points(1000, 1), validation=points(500, 2), test=points(500, 3))

    def build(self, architecture: Architecture) -> nn.Module:
        """Points [B, 2] to class scores [B, 2]. Nothing here may need the data, or name a device."""
        width = architecture.width
        layers = [Layer(width, architecture.hidden) for _ in range(architecture.depth)]
        stack = build_stack(architecture, layers, Norm("layer", 1e-6), parts=1)
        return nn.Sequential(OrderedDict(embedding=nn.Linear(2, width), stack=stack, head=nn.Linear(width, 2)))

    def example(self) -> tuple[Tensor, ...]:
        """One point: costs are counted on it."""
        return (torch.zeros(1, 2),)


def points(examples: int, seed: int) -> Batch:
    """Points [E, 2] and their crescents [E]. Another seed for each split: nothing measured was trained on."""
    inputs, targets = make_moons(examples, noise=0.2, random_state=seed)
    return torch.tensor(inputs, dtype=torch.float32), torch.tensor(targets)


if __name__ == "__main__":
    from tasks import check_task

    check_task(NewTask())
