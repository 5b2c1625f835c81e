"""What every installed topology owes: walked over the registry, so that a new one is tested on arrival."""

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from search_spaces.architecture import Architecture
from search_spaces.count import Count
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site, Wiring
from search_spaces.topologies.build import build, count
from search_spaces.topologies.registry import TOPOLOGIES, load, refusal

CASES = [
    *TOPOLOGIES.names(),
    "ancre(cascaded=false)",
    "ancre(direction=outgoing)",
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
]
AS_RESNET = [case for case in CASES if load(case)[0].equals_resnet]
HEADLESS = [case for case in CASES if refusal(Architecture(depth=1, width=16, hidden=1, topology=case)) is None]
SHAPES = [
    {},
    {"depth": 1},
    {"heads": 6, "head_dim": 4},  # heads * head_dim is not the width
]

Build = Callable[..., Stack]


def parts() -> tuple[Tensor, Tensor]:
    """Tokens [B, N, D], and positions [N, D] that the batch shares."""
    torch.manual_seed(2)
    return torch.randn(2, 5, 16).double(), torch.randn(5, 16).double()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_tokens_keep_their_shape(case: str, shape: dict[str, int], transformer: Build) -> None:
    assert transformer(case, **shape)(*parts()).shape == (2, 5, 16)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("case", HEADLESS)
def test_no_token_axis_is_needed(case: str, depth: int, mlp: Build) -> None:
    assert mlp(case, depth=depth)(torch.randn(2, 16).double()).shape == (2, 16)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_every_parameter_moves_in_three_steps(case: str, depth: int, transformer: Build) -> None:
    stack = transformer(case, depth=depth)
    optimizer = torch.optim.SGD(stack.parameters(), lr=0.1)
    learned = {**dict(stack.topology.named_parameters()), **weights_of(stack.layers)}
    start = {name: parameter.clone() for name, parameter in learned.items()}
    inputs = parts()
    target = torch.randn_like(inputs[0])
    for _ in range(3):
        optimizer.zero_grad()
        (stack(*inputs) - target).square().mean().backward()
        optimizer.step()
    assert [name for name, parameter in learned.items() if torch.equal(parameter, start[name])] == []


def weights_of(layers: nn.Module) -> dict[str, nn.Parameter]:
    """The matrices: biases of keys, for one, have no effect in attention."""
    return {name: parameter for name, parameter in layers.named_parameters() if parameter.ndim > 1}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("case", AS_RESNET)
def test_equals_resnet_before_training(
    case: str, shape: dict[str, int], transformer: Build, copy_layers: Callable[[Stack, Stack], None]
) -> None:
    resnet, stack = transformer("resnet", **shape), transformer(case, **shape)
    copy_layers(resnet, stack)
    torch.testing.assert_close(stack(*parts()), resnet(*parts()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", sorted(set(AS_RESNET) & set(HEADLESS)))
def test_equals_resnet_before_training_without_tokens(case: str, mlp: Build) -> None:
    x = torch.randn(2, 16).double()
    torch.testing.assert_close(mlp(case)(x), mlp("resnet")(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_two_interleaved_forwards_do_not_meet(case: str, transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    stack = transformer(case)
    draw(stack)
    topology, inputs, others = stack.topology, parts(), tuple(-2 * part for part in parts())
    expected = stack(*inputs), stack(*others)
    first, second = topology.open(*inputs), topology.open(*others)
    for t, layer in enumerate(stack.layers):
        read, first = topology.read(t, first)
        other, second = topology.read(t, second)
        first = topology.write(t, first, layer(*read))
        second = topology.write(t, second, layer(*other))
    assert torch.equal(topology.close(first), expected[0])
    assert torch.equal(topology.close(second), expected[1])


@pytest.mark.parametrize("case", CASES)
def test_no_tensor_stays_on_the_module(case: str, transformer: Build) -> None:
    stack = transformer(case)
    stack(*parts())
    kept = {name for name, module in stack.named_modules() if list(tensors(attributes(module)))}
    assert kept == set()


def attributes(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name not in ("_parameters", "_buffers", "_modules")}


def tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | set) else ():
        yield from tensors(inner)


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")  # RMS norm on a CPU, and true
@pytest.mark.parametrize("case", CASES)
def test_runs_forward_and_backward_under_bf16_autocast(case: str, transformer: Build) -> None:
    stack = transformer(case).float()
    inputs = tuple(part.float() for part in parts())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = stack(*inputs)
    torch.testing.assert_close(y.float(), stack(*inputs), rtol=0.05, atol=0.05)
    y.float().square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in stack.parameters())


class Echo(nn.Module):
    """A layer without parameters or matrix work: what a stack of them costs is what its topology costs."""

    def forward(self, *inputs: Tensor) -> Tensor:
        return inputs[0] * 2


@pytest.mark.parametrize("case", CASES)
def test_compiles_to_one_graph_with_the_same_output(case: str, draw: Callable[[nn.Module], None]) -> None:
    torch.compiler.reset()
    block = Site(("q", "k", "v"), 24, True), Site(("x",), 16, False)
    wiring = Wiring(block * 2, 16, 4, parts=2)
    stack = Stack([Echo() for _ in wiring.sites], build(case, wiring), nn.Identity()).double()
    draw(stack)
    compiled = torch.compile(stack, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*parts()), stack(*parts()))


@pytest.mark.parametrize("shape", [(3, 12, 3, 4), (3, 12, 5, 4), (1, 24, 2, 8)], ids=str)
@pytest.mark.parametrize("case", [*CASES, "dca(form=printed)"])
def test_closed_form_module_and_both_counters_agree(
    case: str, shape: tuple[int, int, int, int], agree: Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]
) -> None:
    depth, width, heads, head_dim = shape
    case = case.replace("values=4", f"values={head_dim}")
    block = Site(("q", "k", "v"), heads * head_dim, True), Site(("x",), width, False)
    wiring = Wiring(block * depth, width, head_dim, parts=2)
    with torch.device("meta"):
        stack = Stack([Echo() for _ in wiring.sites], build(case, wiring), nn.Identity())
        example = torch.empty(1, 7, width), torch.empty(7, width)
    agree(stack, example, count(case, wiring).times(7))
    assert documented(case, wiring) == count(case, wiring).params


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
    }
    return eval(f"({formula[1]})", letters | asdict(options))
