"""The contract of a topology, as checks that anybody can run on their own: `check_topology(MyTopology)`.

Each check is printed as it is tried. One that fails raises a ContractError, which names the rule and says what was
expected.
"""

from collections.abc import Collection

from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from search_spaces.support.spec import Spec
from search_spaces.testing.checks import CONTRACT, check_compiles_to_one_graph
from search_spaces.testing.subject import CountMacs, Subject
from search_spaces.topologies.base import Topology
from search_spaces.topologies.registry import load, options_of


def check_topology(
    topology: str | type[Topology],
    *,
    compiles: bool = False,
    still: Collection[str] = (),
    count_macs: CountMacs | None = None,
) -> None:
    """Run every check of the contract on a topology, and print each as it is tried.

    Args:
        topology: A class, checked with its default options, or the text of an installed one: "dca(k=2)".
        compiles: Whether torch.compile is tried as well, which takes some seconds.
        still: Parameters that need not move in training, by their names in the topology: say why in its docstring.
        count_macs: What the closed form's MACs are held against; without it torch's own counter. A topology with
            `handlers` needs `lambda network, inputs: nas.costs.count.count_macs(network, inputs)[0]`.

    Raises:
        ContractError: A check failed; it names the rule and says what was expected.
        UserError: The text names no installed topology, or an option that it has not.
    """
    target = subject(topology, still=still, count_macs=count_macs)
    for check in (*CONTRACT, *((check_compiles_to_one_graph,) if compiles else ())):
        print(f"{target.name}: {(check.__doc__ or '').partition(chr(10))[0]}", end=" ", flush=True)
        check(target)
        print("ok", flush=True)


def subject(
    topology: str | type[Topology], *, still: Collection[str] = (), count_macs: CountMacs | None = None
) -> Subject:
    """What the checks take, from what `check_topology` does."""
    if isinstance(topology, str):
        name, (kind, options) = topology, load(topology)
    else:
        name, kind = topology.__name__, topology
        options = options_of(kind, Spec(name))
    return Subject(name, kind, options, still, count_macs or torch_macs)


def torch_macs(network: nn.Module, inputs: tuple[Tensor, ...]) -> int:
    """Multiply-accumulates by torch's own counter, which knows no handlers."""
    with FlopCounterMode(display=False) as counter:
        network(*inputs)
    return int(counter.get_total_flops()) // 2
