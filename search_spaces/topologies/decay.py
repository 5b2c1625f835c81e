"""Which parameters weight decay applies to."""

import warnings
from collections.abc import Collection

from torch import nn

from search_spaces.support.errors import Notice
from search_spaces.topologies.base import Topology


def split_by_decay(model: nn.Module, without: Collection[str] = ()) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """A model's parameters that weight decay applies to, and those that it leaves alone.

    It leaves alone what has fewer than two axes (biases, gains) and a topology's mixing weights, whatever their
    shape: their rest value is 1 or what they mean, not 0. A topology's linear maps are decayed as any others are.

    Args:
        model: Whose parameters.
        without: Names of parameters, or of modules with all that is in them, that it leaves alone as well:
            "positions" is `embedding.positions`. Not every model has each of them; of one that has none it is said.
    """
    mixing = {
        id(parameter)
        for topology in model.modules()
        if isinstance(topology, Topology)
        for module in topology.modules()
        if not isinstance(module, nn.Linear)
        for parameter in module.parameters(recurse=False)
    }
    exempt_names = {name for name, _ in model.named_parameters() if not {*name.split(".")}.isdisjoint(without)}
    if without and not exempt_names:
        message = f"without_decay changes nothing: this network has none of {', '.join(without)}."
        warnings.warn(Notice("skipped", message, option="without_decay", value=tuple(without)), stacklevel=2)
    decay: list[nn.Parameter] = []
    exempt: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_exempt = parameter.ndim < 2 or id(parameter) in mixing or name in exempt_names
        (exempt if is_exempt else decay).append(parameter)
    return decay, exempt
