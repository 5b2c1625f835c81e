"""A topology's reported coefficients reproduce its network."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.stack import Stack
from search_spaces.models.vit import build_vit

Build = Callable[..., Stack]
Draw = Callable[[nn.Module], None]
DEPTH = 4


@pytest.fixture
def x() -> Tensor:
    return torch.randn(3, 16, generator=torch.Generator().manual_seed(3)).double()


def weighted_sum(row: Tensor, states: list[Tensor]) -> Tensor:
    """The sum of the states with a weight."""
    return sum((w * state for w, state in zip(row, states, strict=False) if not w.isnan()), torch.zeros_like(states[0]))


def test_ancre_computed_by_its_coefficients_is_the_same(mlp: Build, draw: Draw, x: Tensor) -> None:
    with grouped() as case:
        for options in ("", "(direction=outgoing)", "(direction=none)", "(form=constant)", "(form=latest)"):
            with case(options):
                stack = mlp(f"ancre{options}", depth=DEPTH)
                draw(stack)
                ((name, p),) = stack.topology.coefficients().items()
                assert name == ("a" if "latest" in options else "p")
                h = [x]
                for row, layer in zip(p, stack.layers, strict=True):
                    h.append(h[-1] + layer(h[-1]) + weighted_sum(row, h))
                torch.testing.assert_close(stack(x), h[-1])


def test_ancre_of_feed_forward_inputs_computed_by_its_coefficients_is_the_same(transformer: Build, draw: Draw) -> None:
    stack = transformer("ancre(inputs=feed-forward)", depth=DEPTH)
    draw(stack)
    ((name, p),) = stack.topology.coefficients().items()
    assert name == "p of m"
    h, m = torch.randn(2, 5, 16).double(), list[Tensor]()
    embedded = h
    for j in range(DEPTH):
        between = weighted_sum(p[j], m) if j else 0
        m.append(h + stack.layers[2 * j](h) + between)
        h = m[j] + stack.layers[2 * j + 1](m[j])
    torch.testing.assert_close(stack(embedded, torch.zeros_like(embedded)), h)


def test_denseformer_computed_by_its_coefficients_is_the_same(mlp: Build, draw: Draw, x: Tensor) -> None:
    with grouped() as case:
        for options in ("", "(dilation=2)", "(period=2)", "(dilation=3,period=2)"):
            with case(options):
                stack = mlp(f"denseformer{options}", depth=DEPTH)
                draw(stack)
                alpha = stack.topology.coefficients()["alpha"]
                states, y = [x], x
                for row, layer in zip(alpha, stack.layers, strict=True):
                    states.append(y + layer(y))
                    y = states[-1] if row.isnan().all() else weighted_sum(row, states)
                torch.testing.assert_close(stack(x), y)


@pytest.mark.parametrize(
    ("topology", "names"),
    [
        ("hyper(dynamic=false)", ("A_m", "A_r", "B")),
        ("mhc(dynamic=false)", ("H_pre", "H_res", "H_post")),
        ("mhc(dynamic=false,streams=3,mixing=permutations)", ("H_pre", "H_res", "H_post")),
        ("mhc(dynamic=false,mixing=none)", ("H_pre", "", "H_post")),
    ],
)
def test_streams_computed_by_their_coefficients_are_the_same(
    topology: str, names: tuple[str, str, str], mlp: Build, draw: Draw, x: Tensor
) -> None:
    stack = mlp(topology, depth=DEPTH)
    draw(stack)
    coefficients = stack.topology.coefficients()
    assert {*coefficients} == {name for name in names if name}
    read, mixing, write = (coefficients.get(name) for name in names)
    assert read is not None
    assert write is not None
    n = read.shape[-1]
    streams = torch.stack([x] * n, dim=-2)  # [..., N, D]
    for t, layer in enumerate(stack.layers):
        y = layer(torch.einsum("n,bnd->bd", read[t], streams))
        mix = torch.eye(n).double() if mixing is None or mixing[t].isnan().any() else mixing[t]
        mix = mix.T if topology.startswith("hyper") else mix
        streams = mix @ streams + write[t][:, None] * y[:, None]
    torch.testing.assert_close(stack(x), streams.mean(-2))


def test_frac_computed_by_its_coefficients_is_the_same(mlp: Build, draw: Draw, x: Tensor) -> None:
    stack = mlp("frac(dynamic=false)", depth=DEPTH)
    draw(stack)
    coefficients = stack.topology.coefficients()
    parts = x.unflatten(-1, (4, -1))
    for t, layer in enumerate(stack.layers):
        y = layer((coefficients["Y"][t].T @ parts).flatten(-2))
        parts = coefficients["A"][t].T @ parts + coefficients["B"][t][:, None] * y.unflatten(-1, (4, -1))
    torch.testing.assert_close(stack(x), parts.flatten(-2))


def test_muddformer_computed_by_its_coefficients_is_the_same(transformer: Build, draw: Draw) -> None:
    """W_2 = 0 removes the dependence on the input."""
    stack = transformer("muddformer", depth=DEPTH)
    draw(stack)
    for weights in stack.topology.weights:
        nn.init.zeros_(weights.second.weight)
    coefficients = stack.topology.coefficients()
    assert [*coefficients] == ["a of port 1", "a of port 2", "a of port 3", "a of the skip"]
    x = torch.randn(2, 5, 16).double()
    streams, states = [x] * 4, [x]
    for block in range(DEPTH):
        attention, feed_forward = stack.layers[2 * block : 2 * block + 2]
        middle = streams[-1] + attention(*streams[:3])
        states.append(middle + feed_forward(middle))
        rows = [coefficients[name][block] for name in coefficients if block < DEPTH - 1 or name == "a of the skip"]
        streams = [weighted_sum(row, states) for row in rows]
    torch.testing.assert_close(stack(x, torch.zeros_like(x)), streams[-1])


def test_coefficients_of_value_residuals_are_their_weights(transformer: Build, draw: Draw) -> None:
    stack = transformer("value-residual(learned=true,last=2)", depth=DEPTH)
    draw(stack)
    weights = stack.topology.coefficients()["V_1, own"]
    assert weights[:2].isnan().tolist() == [[True, False]] * 2
    assert weights[:2, 1].tolist() == [1, 1]
    for block in (2, 3):
        assert weights[block].tolist() == stack.topology.weights[str(2 * block)].tolist()
    constants = transformer("value-residual(first=2,own=1)", depth=2).topology.coefficients()["V_1, own"]
    assert constants[1].tolist() == [2, 1]
    first_only = transformer("svformer", depth=2).topology.coefficients()["V_1, own"]
    assert first_only.isnan().tolist() == [[True, False], [False, True]]


def test_coefficients_of_runs_are_numbered_and_resnet_has_none(transformer: Build) -> None:
    shape = Architecture(depth=6, width=16, hidden=8, heads=2, head_dim=8, topology="ancre/resnet/mhc(streams=2)")
    coefficients = build_vit(shape, (1, 4, 4), 2, 3).stack.topology.coefficients()
    assert [*coefficients] == ["run 1: p", "run 3: H_pre", "run 3: H_post", "run 3: H_res"]
    assert coefficients["run 1: p"].shape == (2, 2)
    assert transformer("resnet").topology.coefficients() == {}
