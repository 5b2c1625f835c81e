"""new-topology: a residual network that learns how much of each layer it adds.

This file is a complete topology. `python new_topology.py` checks it against the contract of topologies. Once it is
installed, every task can use it by its name, and every space that searches topologies includes it. To install it, save
these lines next to it as pyproject.toml and run `python -m pip install --editable .`:

    [build-system]
    requires = ["setuptools>=80"]
    build-backend = "setuptools.build_meta"

    [project]
    name = "nas-topology-new-topology"
    version = "0.1.0"

    [project.entry-points."nas.topologies"]
    new-topology = "new_topology:NewTopology"

    [tool.setuptools]
    py-modules = ["new_topology"]

Shapes: ... = any leading axes ([B, N] for tokens, [B] without), D = width.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from search_spaces import Axes, Count, StackSpec, Topology, sum_tensors


@dataclass(frozen=True, slots=True)
class NewTopologyOptions:
    """Options in brackets after the name: "new-topology(per_entry=true)". Every option needs a default.

    Attributes:
        per_entry: One weight for each feature of the stream instead of one for all.
    """

    per_entry: bool = False


@final
class NewTopology(Topology):
    """x_{t+1} = x_t + w_t f_t(x_t), where f_t is layer t and w_t is learned, 1 at initialization.

    Source: name the paper of the equation, and your interpretation where the paper is ambiguous.

    The state is x_t, [..., D].

    Parameters: `layers * (width if per_entry else 1)`
    """

    Options: ClassVar[type] = NewTopologyOptions
    axes: ClassVar[Axes] = {"per_entry": (False, True)}  # values to search; options left out keep their defaults

    @classmethod
    def equals_resnet(cls, options: NewTopologyOptions) -> bool:
        """Return True: the untrained topology equals the residual network, which `nas retrofit` needs."""
        return True

    def __init__(self, spec: StackSpec, options: NewTopologyOptions) -> None:
        super().__init__()
        # Weight decay skips bare parameters; it would pull this weight from 1 to 0.
        self.weights = nn.Parameter(torch.ones(len(spec.sites), spec.width if options.per_entry else 1))

    @classmethod
    def count(cls, spec: StackSpec, options: NewTopologyOptions) -> Count:
        """Count in closed form: one weight a layer or feature, a product and a sum a feature, no matrix work."""
        layers = len(spec.sites)
        return Count(params=layers * (spec.width if options.per_entry else 1), elementwise=2 * layers * spec.width)

    # The state is any value you like. Methods pass it on, and never store it on self.

    def open(self, *embeddings: Tensor) -> Tensor:
        """Return the first state x_0, the sum of the embeddings."""
        return sum_tensors(embeddings)

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Return the input x_t of layer t for all of its ports (such as queries, keys and values), and the state."""
        return (state,), state

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        """Return x_{t+1}, where y is the output of layer t."""
        return torch.addcmul(state, self.weights[t], y)

    def close(self, state: Tensor) -> Tensor:
        """Return the input of the head."""
        return state


if __name__ == "__main__":
    from search_spaces import check_topology

    check_topology(NewTopology)
