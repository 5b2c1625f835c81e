"""A check of third-party networks, which may ignore the topology."""

from torch import nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError
from search_spaces.topologies.base import Topology


def check_topology_support(network: nn.Module, architecture: Architecture) -> None:
    """Raise UserError if the architecture has a topology that the network lacks."""
    if architecture.topology != "resnet" and not any(isinstance(part, Topology) for part in network.modules()):
        raise UserError(
            "unsupported",
            f"topology must be resnet if a network connects its own blocks, got {architecture.topology}. Connect "
            "them with search_spaces.layers.stack.build_stack, or use --space depth-heads.",
            option="topology",
            value=str(architecture.topology),
        )
