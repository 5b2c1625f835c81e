"""The state of a network whose weights several processes share, as one process alone would have it.

In a file of its own, because what it needs of torch takes a second to load.
"""

from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.optim import Optimizer

_FULL_STATE = StateDictOptions(full_state_dict=True, cpu_offload=True)


def gather_state(network: nn.Module, optimizers: Sequence[Optimizer]) -> tuple[dict[str, Any], Any]:
    """All weights and the optimiser's whole state, on the CPU."""
    return get_state_dict(network, optimizers, options=_FULL_STATE)


def scatter_state(network: nn.Module, optimizers: Sequence[Optimizer], weights: Any, state: Any) -> None:
    """Give each process its share of what `gather_state` gave."""
    set_state_dict(network, optimizers, model_state_dict=weights, optim_state_dict=state, options=_FULL_STATE)
