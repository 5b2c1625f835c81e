"""torch.compile for a network, in place."""

import torch
from packaging.version import Version
from torch import nn

SUMS_LOSE_AXES = Version("2.13")
"""Before it, on GPUs, a gradient that torch's compiler sums in one kernel with another, over other axes, loses its axes
of length 1 (pytorch issue 178080; 2.12.1 has the code that does so, 2.13.0 the one that restores them).
"""


def compile_network(network: nn.Module, *, fullgraph: bool = False) -> None:
    """Have a network compiled at its next call, to one graph if asked; its parameters keep their names."""
    loses = Version(torch.__version__) < SUMS_LOSE_AXES
    network.compile(fullgraph=fullgraph, options={"triton.mix_order_reduction": False} if loses else None)
