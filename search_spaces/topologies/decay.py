"""Which parameters weight decay applies to."""

from torch import nn

from search_spaces.topologies.base import Topology


def split_by_decay(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """A model's parameters that weight decay applies to, and those that it leaves alone.

    It leaves alone what has fewer than two axes (biases, gains) and a topology's mixing weights, whatever their
    shape: their rest value is 1 or what they mean, not 0. A topology's linear maps are decayed as any others are.
    """
    mixing = {
        id(parameter)
        for topology in model.modules()
        if isinstance(topology, Topology)
        for module in topology.modules()
        if not isinstance(module, nn.Linear)
        for parameter in module.parameters(recurse=False)
    }
    decayed: list[nn.Parameter] = []
    exempt: list[nn.Parameter] = []
    for parameter in model.parameters():
        (exempt if parameter.ndim < 2 or id(parameter) in mixing else decayed).append(parameter)
    return decayed, exempt
