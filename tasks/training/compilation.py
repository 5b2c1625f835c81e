"""Compilation of networks by torch.compile, in place."""

from typing import Any

from torch import nn

from search_spaces.topologies.base import Topology

MIXED_SUMS = "triton.mix_order_reduction"
"""Inductor option for fused GPU kernels that sum over two different axes.

Such sums of gradients lose axes of length 1 before torch 2.13 (pytorch issue 178080). Rows that do not fill a block can
be summed wrongly (issue 195845, open).
"""


def compile_network(network: nn.Module, *, fullgraph: bool = False) -> None:
    """Compile a network at its next call; its parameters keep their names.

    The options are those of its topologies (`Topology.compile_options`) that this version of torch has.
    """
    from torch._inductor import list_options  # takes a second, so imported only for compiled networks

    options: dict[str, Any] = {MIXED_SUMS: False}
    for module in network.modules():
        if isinstance(module, Topology):
            options |= module.compile_options
    available = set(list_options())
    network.compile(fullgraph=fullgraph, options={name: options[name] for name in options if name in available} or None)
