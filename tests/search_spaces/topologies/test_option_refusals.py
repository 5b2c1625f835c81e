"""Invalid options of topologies, and the largest valid ones."""

from typing import Any

from expect import raises
from grouped import grouped
from search_spaces.support.errors import Kind
from search_spaces.support.spec import Spec
from search_spaces.topologies.registry import resolve_topology

BELOW_ONE = (
    *("aggregation(every=0)", "aggregation(features=0)", "attnres(every=0)", "attnres(heads=0)", "dca(k=0)"),
    *("denseformer(dilation=0)", "denseformer(period=0)", "hyper(streams=0)", "laurel(rank=0)", "laurel(reach=0)"),
    *("mhc(streams=0)", "mhc(rounds=0)", "rmt(keys=0)", "rmt(values=0)", "value-residual(last=0)", "frac(parts=0)"),
)
OUT_OF_RANGE: list[tuple[str, Kind, dict[str, Any]]] = [
    ("laurel-rw(rank=-1)", "out-of-range", {"option": "rank", "value": -1, "least": 0}),
    ("hyper(streams=65)", "out-of-range", {"option": "streams", "value": 65, "least": 1, "most": 64}),
    ("mhc(streams=65)", "out-of-range", {"option": "streams", "value": 65, "least": 1, "most": 64}),
    ("mhc(rounds=1001)", "out-of-range", {"option": "rounds", "value": 1001, "least": 1, "most": 1000}),
    ("mhc(mixing=permutations,streams=7)", "out-of-range", {"option": "streams", "value": 7, "most": 6}),
    ("ancre(temperature=0)", "out-of-range", {"option": "temperature", "value": 0, "above": 0}),
    ("layerscale(start=0)", "out-of-range", {"option": "start", "value": 0, "above": 0}),
    ("grn-v3(form=outside)", "unknown-name", {"option": "form", "value": "outside", "choices": ("inside", "printed")}),
    (
        "highway(form=relu)",
        "unknown-name",
        {"option": "form", "value": "relu", "choices": ("tanh", "sigmoid", "highway")},
    ),
]
EXCLUSIONS: list[tuple[str, dict[str, Any]]] = [
    ("direction=outgoing,form=constant", {"option": "direction", "value": "outgoing", "form": "constant"}),
    ("direction=none,form=latest", {"option": "direction", "value": "none", "form": "latest"}),
    ("form=latest,inputs=both", {"option": "inputs", "value": "both", "form": "latest"}),
    ("cascaded=false,form=latest", {"option": "cascaded", "value": False, "form": "latest"}),
    ("cascaded=false,inputs=feed-forward", {"option": "cascaded", "value": False, "inputs": "feed-forward"}),
]
LARGEST = ("hyper(streams=64)", "mhc(streams=64)", "mhc(rounds=1000)", "mhc(mixing=permutations,streams=6)")


def test_options_out_of_range_are_refused() -> None:
    with grouped() as case:
        for text in BELOW_ONE:
            spec = Spec.parse(text)
            (option,) = spec.options
            with case(text), raises("out-of-range", option=option, value=0, least=1):
                resolve_topology(text)
        for text, kind, fields in OUT_OF_RANGE:
            with case(text), raises(kind, topology=text.partition("(")[0], **fields):
                resolve_topology(text)
    for text in LARGEST:
        assert resolve_topology(text)


def test_options_that_exclude_each_other_are_refused() -> None:
    with grouped() as case:
        for options, fields in EXCLUSIONS:
            with case(options), raises("conflict", **fields):
                resolve_topology(f"ancre({options})")
