"""Generalized residual networks and DeepCrossAttention against their matrix formulas."""

from collections.abc import Callable
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grouped import grouped
from search_spaces.layers.attention import PortProjection
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.grn import GRNOptions, GRNv1, StaticSum

Build = Callable[..., Stack]
Draw = Callable[[nn.Module], None]


def weighted_sum(mix: nn.Module, port: int, outputs: list[Tensor], form: str) -> Tensor:
    """The paper's formula: a matrix G, newest output first, times weights of its shape."""
    g = torch.stack(outputs[::-1], dim=-1)  # [..., D, t]
    if isinstance(mix, StaticSum):
        return (g * mix.b.flip(0).reshape(len(outputs), -1).T).sum(-1)  # b is [D or 1, t]
    b = mix.b[port].flip(0).T  # [D, t]
    w = mix.w[:, port].flip(0).T  # [D, t] or [D, 1]
    scores = (w * g).sum(-2, keepdim=True)  # [..., 1, t]
    weights = {"printed": b + torch.relu(scores), "inside": torch.relu(b + scores)}[form]
    return (g * weights).sum(-1)


def first_and_last(outputs: list[Tensor], k: int | None) -> list[Tensor]:
    """The entries of the formula, oldest first."""
    if k is None or len(outputs) <= k + 2:
        return outputs
    return [outputs[0], torch.stack(outputs[1:-k]).sum(0), *outputs[-k:]]


@pytest.mark.parametrize(
    ("name", "extra", "form"),
    [
        ("grn-v1", {}, ""),
        ("grn-v2", {}, ""),
        ("grn-v3", {}, "inside"),
        ("grn-v3", {"per_entry": "true"}, "inside"),
        ("grn-v3", {"form": "printed"}, "printed"),
        ("grn-v3", {"form": "printed", "per_entry": "true"}, "printed"),
    ],
)
def test_grn_matches_the_matrix_formula(
    name: str, extra: dict[str, str], form: str, transformer: Build, draw: Draw
) -> None:
    with grouped() as case:
        for k in (None, 1, 2, 4):
            options = extra | ({"k": str(k)} if k else {})
            text = f"{name}({','.join(f'{key}={value}' for key, value in options.items())})"
            with case(text):
                stack = transformer(text, depth=5)
                draw(stack)
                x = torch.randn(2, 5, 16).double()
                sums, outputs = stack.topology.inner.sums, [x]
                for block in range(5):
                    g = weighted_sum(sums[block], 0, first_and_last(outputs, k), form)
                    a = stack.layers[2 * block](g)
                    outputs.append(a + stack.layers[2 * block + 1](a + g))
                y = weighted_sum(sums[5], 0, first_and_last(outputs, k), form)
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), y)


def figure_four(stack: Stack, x: Tensor, k: int | None) -> Tensor:
    """Three mixes per attention layer, one of which is the skip."""
    depth, heads, tokens = len(stack.layers) // 2, 6, x.shape[1]
    sums, outputs = stack.topology.inner.sums, [x]
    for block in range(depth):
        attention, feed_forward = stack.layers[2 * block : 2 * block + 2]
        entries = first_and_last(outputs, k)
        g_q, g_k, g_v = (weighted_sum(sums[block], port, entries, "inside") for port in range(3))
        assert isinstance(attention.project, PortProjection)
        q, key, v = (
            linear(norm(g)).reshape(2, tokens, heads, 4)
            for linear, norm, g in zip(
                attention.project.projections, attention.project.norms, (g_q, g_k, g_v), strict=True
            )
        )
        scores = torch.einsum("bnhd,bmhd->bhnm", q, key) / 2
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf)
        a = attention.out(torch.einsum("bhnm,bmhd->bnhd", scores.softmax(-1), v).reshape(2, tokens, heads * 4))
        u = feed_forward.norm(a + g_q)
        outputs.append(a + feed_forward.down(F.gelu(feed_forward.up(u))))
    return weighted_sum(sums[depth], 0, first_and_last(outputs, k), "inside")


def test_dca_matches_figure_four_by_hand(transformer: Build, draw: Draw) -> None:
    with grouped() as case:
        for per_entry, k in product(("true", "false"), (None, 1, 2)):
            text = f"dca(per_entry={per_entry}{f',k={k}' if k else ''})"
            with case(text):
                stack = transformer(text, depth=4, heads=6, head_dim=4)
                draw(stack)
                x = torch.randn(2, 5, 16).double()
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), figure_four(stack, x, k))


def test_stack_holds_the_input_the_sum_of_the_middle_and_the_last_k() -> None:
    for k in (1, 2, 3, 6, 9):
        topology = GRNv1(StackSpec((Site(("x",), 1, True),) * 6, 1, 0), GRNOptions(k))
        state = topology.open(torch.tensor([1.0]))
        outputs = [torch.tensor([10.0**t]) for t in range(7)]
        for t in range(6):
            assert [e.item() for e in state] == [e.item() for e in first_and_last(outputs[: t + 1], k)], (k, t)
            state = topology.write(t, topology.read(t, state)[1], outputs[t + 1])
        assert len(state) == min(7, k + 2)


def test_k_equal_to_the_depth_reads_the_whole_stack(transformer: Build, draw: Draw) -> None:
    whole, last_four = transformer("dca", depth=4), transformer("dca(k=4)", depth=4)
    draw(whole)
    last_four.load_state_dict(whole.state_dict())
    x = torch.randn(2, 5, 16).double()
    assert torch.equal(last_four(x, x), whole(x, x))


def test_w_has_a_gradient_only_in_our_form(transformer: Build) -> None:
    def gradients(text: str) -> list[bool]:
        stack = transformer(text)
        x = torch.randn(2, 5, 16).double()
        stack(x, x).square().sum().backward()
        return [bool(mix.w.grad.any()) for mix in stack.topology.inner.sums]

    for name in ("grn-v3", "dca"):
        assert not any(gradients(f"{name}(form=printed)")), name
        assert all(gradients(f"{name}(form=inside)")), name
