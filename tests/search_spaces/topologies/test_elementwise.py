"""Elementwise work: the closed form against the papers' equations on vectors that count operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from itertools import product
from math import factorial
from operator import add
from typing import Any

import pytest

from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.testing.small_networks import transformer_spec
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.registry import TOPOLOGIES, incompatibility_reason, resolve_topology

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
    "dca(form=printed)",
    "denseformer(dilation=2)",
    "denseformer(period=2,dilation=3)",
    "grn-v1(k=1)",
    "grn-v2(k=3)",
    "hyper(streams=1)",
    "hyper(dynamic=false,streams=2)",
    "rmt(keys=8)",
    "attnres(every=2)",
    "attnres(every=5)",
    "attnres(heads=4)",
    "attnres(scaled=false)",
    "attnres-delta(every=2)",
    "attnres-delta(gated=false)",
    "mhc(streams=1)",
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


class Vector:
    """A vector's length, and the shared list of operations."""

    def __init__(self, width: int, done: list[int]) -> None:
        self.width, self.done = width, done

    def __add__(self, other: Vector | float) -> Vector:
        assert not isinstance(other, Vector) or other.width == self.width
        self.done.append(self.width)
        return Vector(self.width, self.done)

    __mul__ = __rmul__ = __radd__ = __add__

    def like(self, width: int) -> Vector:
        return Vector(width, self.done)


Run = Callable[..., Vector]
Equation = Callable[[StackSpec, Any, list[Run], Vector], object]


def layer(*inputs: Vector) -> Vector:
    return inputs[0].like(inputs[0].width)


def block_of(layers: int) -> Run:
    """A block with residual skips inside; its output excludes its input."""

    def block(*inputs: Vector) -> Vector:
        output = layer(*inputs)
        for _ in range(layers - 1):
            output = output + layer(inputs[0] + output)
        return output

    return block


def plain(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    for f in runs:
        x = f(x)


def residual(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    for f in runs:
        x = x + f(x)


def ancre(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    p, layers = 0.5, len(spec.sites) // sum(site.starts_block for site in spec.sites)
    h, m = [x], list[Vector]()
    for j in range(len(runs) // layers):
        began, output = h[-1], runs[0](h[-1])
        for _ in range(layers - 1):
            if options.inputs != "blocks":
                began = reduce(add, [began, *(p * earlier for earlier in m)])
            m.append(began + output)
            output = output + runs[0](m[-1])
        sources = h if options.inputs != "feed-forward" else []
        if options.form == "latest":
            sources = h[1:][-1:] if j else []
        h.append(reduce(add, [*([began] if options.cascaded else []), output, *(p * earlier for earlier in sources)]))


def denseformer(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    xs, y, alpha = [x], x, 0.5
    for i, f in enumerate(runs, start=1):
        xs.append(y + f(y))
        y = xs[-1]
        if i % options.period == 0:
            y = reduce(add, [alpha * xs[j] for j in range(i + 1) if (i - j) % options.dilation == 0])


def hyper(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    n, s, b, entry = options.streams, 0.5, 0.5, x.like(1)
    streams = [x] * n
    for f in runs:
        if options.dynamic:
            for _ in range(n * (n + 1) + n):  # entries of A and B
                entry + s * entry
        y = f(x.like(x.width))  # A^T H is a matrix product
        streams = [stream + b * y for stream in streams]
    (1 / n) * reduce(add, streams)


def mhc(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    n, entry = options.streams, x.like(1)
    streams = [x] * n
    for t, f in enumerate(runs):
        if options.dynamic:
            logits = {"sinkhorn": n * n, "permutations": factorial(n), "none": 0}[options.mixing] if t else 0
            for _ in range(2 * n + logits):  # entries of b + a x phi
                entry + 0.5 * entry
        y = f(x.like(x.width))  # H_pre X and H_res X are matrix products
        streams = [stream + 0.5 * y for stream in streams]
    (1 / n) * reduce(add, streams)


def frac(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    m, entry = options.parts, x.like(1)
    for f in runs:  # Y^T H and A^T H are matrix products
        for _ in range(m * (2 * m + 1) if options.dynamic else 0):
            entry + 0.5 * entry
        x = x + 0.5 * f(x)


def scaled_residual(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    for f in runs:
        x = x + 0.5 * f(x)


def laurel(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    states = [x]
    for f in runs:
        window = states[-options.reach :]
        low_rank = reduce(add, [0.5 * state for state in window]) if options.reach > 1 else window[0]
        states.append(states[-1] + f(states[-1]) + low_rank.like(x.width))


def laurel_rw(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    for f in runs:
        skip = x + x.like(x.width) if options.rank else x
        x = 0.5 * f(x) + 0.5 * skip


def highway(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    for f in runs:
        gate, value = x.like(x.width), x.like(x.width)  # matrix products, and activations
        x = f(x) + (1 + gate) * x + gate * value if options.form == "highway" else f(x) + x + gate * value


def depth_lstm(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    output, cell = x, x.like(x.width)
    for f in runs:
        write, keep, give, candidate = (f(output).like(x.width) for _ in range(4))  # matrix products, and activations
        cell = keep * cell + write * candidate
        output = give * cell


def aggregation(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    layers = len(spec.sites) // (blocks := sum(site.starts_block for site in spec.sites))
    stages: list[Vector] = []
    for t, f in enumerate(runs, start=1):
        x = x + f(x)
        block, inside = divmod(t, layers)
        if inside == 0:
            if block % options.every == 0 or block == blocks:
                stages.append(x)
            if block % (2 * options.every) == 0 or block == blocks:
                x = reduce(add, [x.like(x.width), *stages])  # FF plus its inputs
                stages = [x]


def attnres(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    blocks, outputs = [x], list[Vector]()

    def mix() -> Vector:  # w . v is a matrix product
        return reduce(add, [0.5 * v for v in (*blocks, *outputs)])

    for t, f in enumerate(runs):
        y = f(mix() if t else x)
        outputs = [reduce(add, [*outputs, y])]
        if (t + 1) % options.every == 0:
            blocks, outputs = [*blocks, *outputs], []
    mix()


def muddformer(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    opens = [site.starts_block for site in spec.sites]
    ports = len(spec.sites[0].ports)
    states, entry = [x], x.like(1)
    for t, f in enumerate(runs):
        x = x + f(x)
        if [*opens, True][t + 1]:
            states.append(x)
            for _ in range(ports + 1 if ports > 1 and t + 1 < len(runs) else 1):
                for _ in states:
                    entry + 0.5  # the product with W_2, and a
                x = reduce(add, [0.5 * state for state in states])
                x = x + states[-1] if options.norm == "pre-post" else x


def value_residual(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    first = None
    attending = [t for t, site in enumerate(spec.sites) if site.attends]
    for t, f in enumerate(runs):
        if spec.sites[t].attends:
            v = x.like(spec.sites[t].features)
            if first is not None and (options.last is None or t in attending[-options.last :]):
                v = 0.5 * first + 0.5 * v
            first = first or v
        x = x + f(x)


def attnres_delta(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    blocks, outputs, h = [x], list[Vector](), x
    for t, f in enumerate(runs):
        mix = reduce(add, [0.5 * v for v in (*blocks, *outputs)]) if t else x
        y = f(h + (0.5 * mix if options.gated else mix) if t else h)
        h, outputs = h + y, [reduce(add, [*outputs, y])]
        if (t + 1) % options.every == 0:
            blocks, outputs = [*blocks, *outputs], []


def rmt(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
    matrix = x.like(options.keys * (options.values or spec.head_dim))
    for _ in runs:  # loads and stores are matrix products
        matrix = matrix + matrix.like(matrix.width)


def generalized_residual(weight: Callable[[Any, Vector], Any]) -> Equation:
    def equation(spec: StackSpec, options: Any, runs: list[Run], x: Vector) -> None:
        outputs = [x]
        middle: list[Vector] = []  # e_1 + ... + e_{t-k-1}, which grows by one output a block

        def read() -> Vector:
            return reduce(add, [weight(options, e) * e for e in (outputs[0], *middle, *outputs[1:])])

        for f, site in zip(runs, [site for site in spec.sites if site.starts_block], strict=True):
            outputs.append(f(*(read() for _ in (site.ports if weight is per_port else "x"))))
            if options.k is not None and len(outputs) > options.k + 1:
                middle = [reduce(add, [*middle, outputs.pop(1)])]
        read()

    return equation


def static(options: Any, e: Vector) -> float:
    return 0.5


def gated_weight(options: Any, e: Vector) -> Vector:
    b, w_e = e.like(e.width), 0.5  # w . e is a matrix product, and ReLU an activation
    return b + w_e


def per_port(options: Any, e: Vector) -> Vector:
    return gated_weight(options, e)


EQUATIONS: Mapping[str, Equation] = {
    "none": plain,
    "resnet": residual,
    "ancre": ancre,
    "denseformer": denseformer,
    "hyper": hyper,
    "mhc": mhc,
    "attnres": attnres,
    "attnres-delta": attnres_delta,
    "frac": frac,
    "layerscale": scaled_residual,
    "rezero": scaled_residual,
    "laurel": laurel,
    "deepnorm": scaled_residual,
    "value-residual": value_residual,
    "svformer": residual,
    "muddformer": muddformer,
    "laurel-rw": laurel_rw,
    "highway": highway,
    "depth-lstm": depth_lstm,
    "aggregation": aggregation,
    "rmt": rmt,
    "grn-v1": generalized_residual(static),
    "grn-v2": generalized_residual(static),
    "grn-v3": generalized_residual(gated_weight),
    "dca": generalized_residual(per_port),
}


def tally(case: str, spec: StackSpec, layers: int) -> int:
    """Operations of the equation at one position."""
    topology, options = resolve_topology(case)
    blocks = sum(site.starts_block for site in spec.sites)
    runs = [block_of(layers)] * blocks if topology.granularity == "block" else [layer] * (layers * blocks)
    done: list[int] = []
    EQUATIONS[case.partition("(")[0]](spec, options, runs, Vector(spec.width, done))
    return sum(done)


def with_options(name: str) -> list[str]:
    """A topology alone and with each of its options here."""
    return [case for case in CASES if case.partition("(")[0] == name]


@pytest.mark.parametrize("name", TOPOLOGIES.names())
def test_mixing_work_in_a_transformer_equals_the_equations_tally(name: str) -> None:
    with grouped() as case:
        for text, depth in product(with_options(name), (1, 2, 7)):
            with case(f"{text} at depth {depth}"):
                spec = transformer_spec(resolve_topology(text)[0], depth, width=12, heads=5, head_dim=4)
                done = tally(text, spec, layers=len(spec.sites) // depth)
                assert count_topology(*resolve_topology(text), spec).elementwise == done


def test_mixing_work_around_dense_layers_equals_the_equations_tally() -> None:
    invalid = set()
    with grouped() as case:
        for text, depth in product((*CASES, "rmt(values=3)"), (1, 6)):
            if incompatibility_reason(Architecture(depth=depth, width=12, hidden=12, topology=text)) is not None:
                invalid.add(text.partition("(")[0])
                continue
            with case(f"{text} at depth {depth}"):
                spec = StackSpec((Site(("x",), 12, True),) * depth, width=12, head_dim=0)
                assert count_topology(*resolve_topology(text), spec).elementwise == tally(text, spec, layers=1)
    assert invalid == {"ancre", "depth-lstm", "rmt", "svformer", "value-residual"}
