"""Run the contract checks of a topology: `check_topology(MyTopology)`.

Each check is printed as it runs. A failing one raises a ContractError with the rule and what was expected.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields

from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from search_spaces.support.spec import Scalar, Spec
from search_spaces.testing.checks import CONTRACT, check_compiles_to_one_graph
from search_spaces.testing.subject import CountMacs, Subject
from search_spaces.topologies.base import Topology
from search_spaces.topologies.registry import options_of, resolve_topology


def check_topology(
    topology: str | type[Topology],
    *,
    compiles: bool = False,
    still: Collection[str] = (),
    count_macs: CountMacs | None = None,
) -> None:
    """Run every contract check on a topology, and print each as it runs.

    Args:
        topology: A class, checked with its default options and each value of its axes, or the text of an installed one:
            "dca(k=2)".
        compiles: Whether to check torch.compile too, which takes some seconds.
        still: Names of the topology's parameters that need not change in training; explain them in its docstring.
        count_macs: The counter that the closed form's MACs are compared with, by default torch's. A topology with
            `handlers` needs `lambda network, inputs: nas.costs.count.count_macs(network, inputs)[0]`.

    Raises:
        ContractError: A check failed; it names the rule and says what was expected.
        UserError: The text names no installed topology, or an unknown option.
    """
    checks = (*CONTRACT, *((check_compiles_to_one_graph,) if compiles else ()))
    for options in ({},) if isinstance(topology, str) else searched_options(topology):
        target = subject(topology, options, still=still, count_macs=count_macs)
        for check in checks:
            print(f"{target.name}: {(check.__doc__ or '').partition(chr(10))[0]}", end=" ", flush=True)
            check(target)
            print("ok", flush=True)


def searched_options(topology: type[Topology]) -> Iterator[Mapping[str, Scalar]]:
    """Yield no options, for the defaults, then each value of the topology's axes that is not a default, alone."""
    defaults = {field.name: field.default for field in fields(topology.Options)}
    yield {}
    for name, values in topology.axes.items():
        yield from ({name: value} for value in values if value != defaults.get(name))


def subject(
    topology: str | type[Topology],
    options: Mapping[str, Scalar] | None = None,
    *,
    still: Collection[str] = (),
    count_macs: CountMacs | None = None,
) -> Subject:
    """Build the checks' Subject from the arguments of `check_topology`."""
    if isinstance(topology, str):
        kind, values = resolve_topology(topology)
        return Subject(topology, kind, values, still, count_macs or torch_macs)
    spec = Spec(topology.__name__, options or {})
    return Subject(str(spec), topology, options_of(topology, spec), still, count_macs or torch_macs)


def torch_macs(network: nn.Module, inputs: tuple[Tensor, ...]) -> int:
    """Count multiply-accumulates with torch's own counter, which has no handlers."""
    with FlopCounterMode(display=False) as counter:
        network(*inputs)
    return int(counter.get_total_flops()) // 2
