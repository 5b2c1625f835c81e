"""torch.compile for a network, in place."""

from torch import nn

MIXED_SUMS = "triton.mix_order_reduction"
"""Two sums over different axes in one kernel, on GPUs. Before torch 2.13 gradients that are summed so lose their axes
of length 1 (pytorch issue 178080), and rows that do not fill a block can be summed wrongly (issue 195845, open).
"""


def compile_network(network: nn.Module, *, fullgraph: bool = False) -> None:
    """Have a network compiled at its next call, to one graph if asked; its parameters keep their names."""
    from torch._inductor import list_options  # a second, which other networks do not need

    options = {MIXED_SUMS: False} if MIXED_SUMS in list_options() else None
    network.compile(fullgraph=fullgraph, options=options)
