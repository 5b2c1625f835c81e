"""The parameters that weight decay applies to."""

import warnings
from collections.abc import Collection

from torch import nn

from search_spaces.support.errors import Notice
from search_spaces.topologies.base import Topology


def split_by_decay(model: nn.Module, without: Collection[str] = ()) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Divide a model's parameters into those with weight decay and those without.

    Parameters with fewer than two axes (biases, gains) and mixing weights of topologies have none: their neutral value
    is not 0. Linear maps of topologies are decayed like all others.

    Args:
        model: The model.
        without: More names of parameters or modules without decay: "positions" exempts `embedding.positions`. Names may
            be missing from a model; a Notice says if none is found.
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
        message = f"without_decay has no effect: this network has none of {', '.join(without)}."
        warnings.warn(Notice("skipped", message, option="without_decay", value=tuple(without)), stacklevel=2)
    decay: list[nn.Parameter] = []
    exempt: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_exempt = parameter.ndim < 2 or id(parameter) in mixing or name in exempt_names
        (exempt if is_exempt else decay).append(parameter)
    return decay, exempt
