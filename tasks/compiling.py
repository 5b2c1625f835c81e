"""torch.compile for a network, in place."""

import torch
from packaging.version import Version
from torch import nn

SUMS_LOSE_AXES = Version("2.13")
"""Before it, torch's compiler loses axes of length 1 of a gradient that it sums beside another one on a GPU."""


def compile_network(network: nn.Module) -> None:
    """Have a network compiled at its next call; its parameters keep their names."""
    if Version(torch.__version__) < SUMS_LOSE_AXES:
        from torch._inductor import config

        config.triton.mix_order_reduction = False
    network.compile()
