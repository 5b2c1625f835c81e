"""torch.compile for a network, in place."""

from typing import Any

from torch import nn

from search_spaces.topologies.base import Topology

MIXED_SUMS = "triton.mix_order_reduction"
"""Two sums over different axes in one kernel, on GPUs. Before torch 2.13 gradients that are summed so lose their axes
of length 1 (pytorch issue 178080), and rows that do not fill a block can be summed wrongly (issue 195845, open).
"""


def compile_network(network: nn.Module, *, fullgraph: bool = False) -> None:
    """Have a network compiled at its next call, to one graph if asked; its parameters keep their names.

    By the options that its topologies name (`Topology.compiled_with`), of those that this torch has.
    """
    from torch._inductor import list_options  # a second, which other networks do not need

    options: dict[str, Any] = {MIXED_SUMS: False}
    for module in network.modules():
        if isinstance(module, Topology):
            options |= module.compiled_with
    available = set(list_options())
    network.compile(fullgraph=fullgraph, options={name: options[name] for name in options if name in available} or None)
