"""The contract of every installed topology; new ones are tested automatically."""

import re
from collections.abc import Callable
from dataclasses import asdict
from math import factorial

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from grouped import grouped
from nas.costs.count import count_macs
from nas.costs.shapes import Shapes
from search_spaces.layers.stack import Stack
from search_spaces.testing.checks import (
    CONTRACT,
    check_compiles_to_one_graph,
    check_finite_at_64_blocks,
)
from search_spaces.testing.contract import subject
from search_spaces.testing.small_networks import echoes, transformer_spec
from search_spaces.topologies.base import StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology

OPTIONS = [
    "ancre(direction=none,inputs=both)",
    "ancre(direction=outgoing,inputs=both)",
    "ancre(form=latest)",
    "dca(k=2,per_entry=true)",
    "denseformer(period=2)",
    "grn-v1(k=1)",
    "grn-v3(per_entry=true)",
    "hyper(dynamic=false,streams=2)",
    "rmt(keys=8,norm=rms)",
    "rmt(values=4)",
    "attnres(every=2)",
    "attnres(scaled=false)",
    "attnres-delta(every=2)",
    "mhc(dynamic=false,rounds=2)",
    "mhc(mixing=permutations,streams=3)",
    "mhc(rounds=2,streams=1)",
    "frac(parts=2,dynamic=false)",
    "laurel(reach=3,rank=2)",
    "laurel-rw(rank=2)",
    "rezero(norms=false)",
    "muddformer(norm=pre-post)",
    "value-residual(learned=true)",
    "highway(form=highway)",
    "aggregation(every=3,features=5)",
]
MORE_OPTIONS = [
    "ancre(cascaded=false)",
    "ancre(direction=outgoing)",
    "ancre(form=constant)",
    "ancre(inputs=feed-forward)",
    "dca(k=1)",
    "denseformer(dilation=2)",
    "grn-v3(k=2)",
    "hyper(streams=1)",
    "attnres(every=5)",
    "attnres(heads=4)",
    "attnres-delta(gated=false)",
    "mhc(mixing=none,streams=2)",
    "mhc(rounds=2,streams=2)",
    "rezero(shared=false)",
    "muddformer(rounded=true)",
    "value-residual(last=1)",
    "highway(form=sigmoid)",
    "aggregation(every=2)",
]
"""Options whose counts run by default, and all else with `-m slow`."""

DEFAULT_ROUNDS = ["mhc(dynamic=false)", "mhc(streams=1)", "mhc(streams=2)"]
"""mhc with its default rounds of Sinkhorn's normalization, which take seconds: only counts run by default."""

COMPILE_CASE = "dca"
"""The topology compiled by default; a compilation takes about 1 s."""

DEEP = set(TOPOLOGIES.names()) - {"attnres", "attnres-delta", "grn-v1", "grn-v2"}
"""Topologies tried with 64 blocks by default. Sums over all layers take seconds; dca and grn-v3 cover them."""

pytestmark = pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")  # RMS norm on a CPU, and true


@pytest.mark.parametrize("case", [*TOPOLOGIES.names(), *OPTIONS])
def test_a_topology_keeps_every_rule(case: str) -> None:
    example = subject(case, count_macs=by_our_counter)
    with grouped() as rule:
        for check in CONTRACT:
            if check is check_finite_at_64_blocks and case not in DEEP:
                continue  # slow, below
            with rule(check.__name__):
                check(example)
        with rule("its docstring gives its parameters"):
            check_documented_parameters(case)
        with rule("large counts are exact"):
            check_large_counts(case)


def test_a_topology_compiles_to_one_graph() -> None:
    check_compiles_to_one_graph(subject(COMPILE_CASE))


@pytest.mark.slow
@pytest.mark.parametrize("name", TOPOLOGIES.names())
def test_a_topology_keeps_every_rule_with_all_options(name: str) -> None:
    with grouped() as rule:
        for case in (name, *OPTIONS, *MORE_OPTIONS, *DEFAULT_ROUNDS):
            if case.partition("(")[0] == name:
                for check in (*CONTRACT, check_compiles_to_one_graph):
                    with rule(f"{case}: {check.__name__}"):
                        check(subject(case))


@pytest.mark.parametrize(
    "case",
    [
        "aggregation",
        "depth-lstm",
        "highway",
        *(pytest.param(f"highway(form={form})", marks=pytest.mark.slow) for form in ("sigmoid", "highway")),
    ],
)
def test_64_blocks_are_finite_in_bf16_with_large_inputs(case: str, transformer: Callable[..., Stack]) -> None:
    stack = transformer(case, depth=64).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = stack(10 * torch.randn(2, 5, 16), torch.randn(5, 16))
    features.float().square().mean().backward()
    assert features.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in stack.parameters())


def test_counts_with_more_options_are_the_closed_form() -> None:
    with grouped() as rule:
        for case in (*MORE_OPTIONS, *DEFAULT_ROUNDS, "dca(form=printed)"):  # where w has no gradient
            with rule(f"{case}: its docstring gives its parameters"):
                check_documented_parameters(case)
            with rule(f"{case}: large counts are exact"):
                check_large_counts(case, depth=3)


def by_our_counter(network: nn.Module, inputs: tuple[Tensor, ...]) -> int:
    return count_macs(network, inputs)[0]


def check_documented_parameters(case: str) -> None:
    """Assert that the docstring's formula equals the closed form."""
    for depth, width, heads, head_dim in ((3, 12, 5, 4), (1, 24, 2, 4)):
        spec = transformer_spec(resolve_topology(case)[0], depth, width, heads, head_dim)
        assert params_by_docstring(case, spec) == count_topology(*resolve_topology(case), spec).params


def params_by_docstring(case: str, spec: StackSpec) -> int:
    """The value of the docstring's formula."""
    topology, options = resolve_topology(case)
    formula = re.search(r"Parameters: `([^`]+)`", topology.__doc__ or "")
    assert formula, f"{topology.__name__} does not say how many parameters it adds."
    opening = [site for site in spec.sites if site.starts_block]
    letters = {
        "blocks": len(opening),
        "layers": len(spec.sites),
        "sites": spec.sites,
        "ports": len(opening[0].ports),
        "width": spec.width,
        "head_dim": spec.head_dim,
        "num_embeddings": spec.num_embeddings,
        "hidden": spec.hidden,
        "factorial": factorial,
    }
    return eval(f"({formula[1]})", letters | asdict(options))


def check_large_counts(case: str, depth: int = 2) -> None:
    """Assert exact counts that a float cannot represent."""
    width, heads, head_dim = 1236, 4, 309
    if "values=4" in case:  # RMT's values have the length of a head
        heads, head_dim = 309, 4
    with torch.device("meta"):
        stack = echoes(*resolve_topology(case), depth, width=width, heads=heads, head_dim=head_dim).requires_grad_(
            False
        )
        inputs = torch.empty(1, 7, width).double(), torch.empty(7, width).double()
    form = count_topology(
        *resolve_topology(case), transformer_spec(resolve_topology(case)[0], depth, width, heads, head_dim)
    )
    assert sum(parameter.numel() for parameter in stack.parameters()) == form.params
    assert count_macs(stack, inputs)[0] == 7 * form.macs
    with Shapes(), FlopCounterMode(display=False) as counter:
        stack(*inputs)
    assert counter.get_total_flops() == 2 * 7 * form.macs


def test_the_first_line_of_a_docstring_gives_the_source() -> None:
    with grouped() as case:
        for name in TOPOLOGIES.names():
            if name != "none":
                with case(name):
                    first = (TOPOLOGIES.load(name).__doc__ or "").partition("\n")[0]
                    assert re.search(r"\((.* )?(19|20)\d\d[;)]", first)
