"""new-topology: a residual network that learns how much of each layer it adds.

A topology to start from, complete as it is: `python new_topology.py` tries what every topology owes. Once it is
installed it has a name, and every task and every space that walks the topologies has it. For that, this stands beside
it as pyproject.toml, and `python -m pip install --editable .` installs both:

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

from search_spaces import Axes, Count, Topology, Wiring, sum_tensors


@dataclass(frozen=True, slots=True)
class NewTopologyOptions:
    """What stands in brackets behind the name: "new-topology(per_entry=true)". Every option has a default.

    Attributes:
        per_entry: A weight for each feature of the stream in place of one for all.
    """

    per_entry: bool = False


@final
class NewTopology(Topology):
    """x_{t+1} = x_t + w_t f_t(x_t), where f_t is layer t and w_t is learnt, 1 at the start.

    Source: say whose equation it is, and what you read into it where it can be read in two ways.

    The state is x_t, [..., D].

    Parameters: `layers * (width if per_entry else 1)`
    """

    Options: ClassVar[type] = NewTopologyOptions
    axes: ClassVar[Axes] = {"per_entry": (False, True)}  # what spaces search; options left out keep their defaults

    @classmethod
    def equals_resnet(cls, options: NewTopologyOptions) -> bool:
        """As long as it is untrained; `nas retrofit` takes such topologies."""
        return True

    def __init__(self, wiring: Wiring, options: NewTopologyOptions) -> None:
        super().__init__()
        # A bare parameter, which weight decay leaves alone: a mixing weight rests at 1, not at 0.
        self.weights = nn.Parameter(torch.ones(len(wiring.sites), wiring.width if options.per_entry else 1))

    @classmethod
    def count(cls, wiring: Wiring, options: NewTopologyOptions) -> Count:
        """In closed form: a weight a layer, or a feature of each; a product and a sum a feature. No matrix work."""
        layers = len(wiring.sites)
        return Count(params=layers * (wiring.width if options.per_entry else 1), elementwise=2 * layers * wiring.width)

    # The state is whatever you like, passed from move to move and never kept on self.

    def open(self, *parts: Tensor) -> Tensor:
        """Start from x_0, the sum of the embeddings."""
        return sum_tensors(parts)

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Give x_t to layer t: one input for all of its ports, queries, keys and values included."""
        return (state,), state

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        """Take what layer t made of it, and form x_{t+1}."""
        return torch.addcmul(state, self.weights[t], y)

    def close(self, state: Tensor) -> Tensor:
        """Return what the head reads."""
        return state


if __name__ == "__main__":
    from search_spaces import check_topology

    check_topology(NewTopology)
