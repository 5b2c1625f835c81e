"""State dicts of sharded networks, as one process would have them.

A module of its own because the imports take a second.
"""

from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.optim import Optimizer

_FULL_STATE = StateDictOptions(full_state_dict=True, cpu_offload=True)


def gather_state(network: nn.Module, optimizers: Sequence[Optimizer]) -> tuple[dict[str, Any], Any]:
    """Return all weights and the whole optimizer state, on the CPU."""
    return get_state_dict(network, optimizers, options=_FULL_STATE)


def scatter_state(network: nn.Module, optimizers: Sequence[Optimizer], weights: Any, state: Any) -> None:
    """Load each rank's shard of what `gather_state` returned."""
    set_state_dict(network, optimizers, model_state_dict=weights, optim_state_dict=state, options=_FULL_STATE)
