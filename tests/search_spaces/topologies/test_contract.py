"""What every installed topology owes: walked over the registry, so that a new one is tested on arrival."""

import re
from collections.abc import Callable
from dataclasses import asdict
from math import factorial

import pytest
import torch

from nas.counting import count_macs
from search_spaces.small_networks import echoes, wiring_of
from search_spaces.testing import subject
from search_spaces.topologies.base import Wiring
from search_spaces.topologies.build import wire_count
from search_spaces.topologies.registry import TOPOLOGIES, load
from search_spaces.topology_checks import (
    CONTRACT,
    Subject,
    check_it_compiles_to_one_graph,
    check_the_closed_form_is_what_is_counted,
)

CASES = [
    *TOPOLOGIES.names(),
    "ancre(cascaded=false)",
    "ancre(direction=outgoing)",
    "ancre(direction=none,inputs=both)",
    "ancre(form=constant)",
    "ancre(form=latest)",
    "ancre(inputs=feed-forward)",
    "ancre(direction=outgoing,inputs=both)",
    "dca(k=1)",
    "dca(k=2,per_entry=true)",
    "denseformer(dilation=2)",
    "denseformer(period=2)",
    "grn-v1(k=1)",
    "grn-v3(k=2)",
    "grn-v3(per_entry=true)",
    "hyper(streams=1)",
    "hyper(dynamic=false,streams=2)",
    "rmt(keys=8,norm=rms)",
    "rmt(values=4)",
    "attnres(every=2)",
    "attnres(every=5)",
    "attnres(heads=4)",
    "attnres(scaled=false)",
    "attnres-delta(every=2)",
    "attnres-delta(gated=false)",
    "mhc(streams=1)",
    "mhc(streams=2)",
    "mhc(streams=2,mixing=none)",
    "mhc(streams=3,mixing=permutations)",
    "mhc(dynamic=false)",
    "frac(parts=2,dynamic=false)",
    "laurel(reach=3,rank=2)",
    "laurel-rw(rank=2)",
    "rezero(shared=false)",
    "rezero(norms=false)",
    "muddformer(norm=pre-post)",
    "value-residual(learned=true)",
    "value-residual(last=1)",
    "muddformer(rounded=true)",
    "highway(form=sigmoid)",
    "highway(form=highway)",
    "aggregation(every=2)",
    "aggregation(every=3,features=5)",
]


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")  # RMS norm on a CPU, and true
@pytest.mark.parametrize("check", [*CONTRACT, check_it_compiles_to_one_graph], ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", CASES)
def test_a_topology_keeps_the_contract(case: str, check: Callable[[Subject], None]) -> None:
    check(subject(case))


@pytest.mark.parametrize("case", [*CASES, "dca(form=printed)"])
def test_our_counter_and_the_docstring_agree_with_the_closed_form(case: str) -> None:
    ours = subject(case, count_macs=lambda network, inputs: count_macs(network, inputs)[0])
    check_the_closed_form_is_what_is_counted(ours)
    for depth, width, heads, head_dim in ((3, 12, 5, 4), (1, 24, 2, 4)):
        wiring = wiring_of(load(case)[0], depth, width, heads, head_dim)
        assert documented(case, wiring) == wire_count(*load(case), wiring).params


@pytest.mark.parametrize("case", [case for case in CASES if "values" not in case])  # RMT's values have a head's length
def test_they_agree_to_the_last_digit_of_large_counts(case: str) -> None:
    width, heads, head_dim = 1236, 4, 309
    with torch.device("meta"):
        stack = echoes(*load(case), 2, width=width, heads=heads, head_dim=head_dim)
        inputs = torch.empty(1, 7, width).double(), torch.empty(7, width).double()
    form = wire_count(*load(case), wiring_of(load(case)[0], 2, width, heads, head_dim))
    assert count_macs(stack, inputs)[0] == 7 * form.macs


def documented(case: str, wiring: Wiring) -> int:
    """What the docstring's formula says."""
    topology, options = load(case)
    formula = re.search(r"Parameters: `([^`]+)`", topology.__doc__ or "")
    assert formula, f"{topology.__name__} does not say how many parameters it adds."
    opening = [site for site in wiring.sites if site.opens_block]
    letters = {
        "blocks": len(opening),
        "layers": len(wiring.sites),
        "sites": wiring.sites,
        "ports": len(opening[0].ports),
        "width": wiring.width,
        "head_dim": wiring.head_dim,
        "parts": wiring.parts,
        "hidden": wiring.hidden,
        "factorial": factorial,
    }
    return eval(f"({formula[1]})", letters | asdict(options))


@pytest.mark.parametrize("name", [name for name in TOPOLOGIES.names() if name != "none"])
def test_the_first_line_says_whose_it_is(name: str) -> None:
    first = (TOPOLOGIES.load(name).__doc__ or "").partition("\n")[0]
    assert re.search(r"\((.* )?(19|20)\d\d[;)]", first)
