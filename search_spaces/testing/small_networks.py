"""Tiny networks in double precision, for testing topologies.

Shapes: B = batch, N = tokens, D = width.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from search_spaces.layers.attention import Attention, SoftmaxAttention
from search_spaces.layers.feed_forward import GELU, FeedForward
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site, StackSpec, Topology
from search_spaces.topologies.build import build_topology

Network = TypeVar("Network", bound=nn.Module)

WIDTH, TOKENS = 16, 5
NORM = Norm("layer", 1e-6)


class Dense(nn.Module):
    """A layer without a token axis that is a block: [B, D] to [B, D]."""

    def __init__(self) -> None:
        super().__init__()
        self.site = Site(("x",), WIDTH, starts_block=True)
        self.map = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, D] to the same shape."""
        return torch.tanh(self.map(x))


class Echo(nn.Module):
    """A layer without parameters or matrix work, so that a stack of them costs what its topology costs."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.site = site

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return twice the first input."""
        return inputs[0] * 2

    def project(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the first input for queries, keys and values."""
        return inputs[0], inputs[0], inputs[0]

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the sum of queries and values, so that both reach the output."""
        return q + v


def transformer(kind: type[Topology], options: Any, depth: int, heads: int, head_dim: int) -> Stack:
    """Build a causal transformer with two embeddings, fixed-seed weights and no final norm."""
    torch.manual_seed(0)
    spec = transformer_spec(kind, depth, WIDTH, heads, head_dim)
    layers: list[nn.Module] = []
    input_mode = kind.input_mode_of(options)
    for block in range(depth):
        attend = SoftmaxAttention(causal=True)
        values = kind.projects_values(spec, options, block * len(spec.sites) // depth)
        layers.append(Attention(WIDTH, heads, head_dim, attend, NORM, input_mode, bias=True, values=values))
        if not kind.replaces_feed_forward:
            layers.append(FeedForward(WIDTH, 2 * WIDTH, GELU, NORM, input_mode, bias=True))
    return _stack(kind, options, layers, spec)


def dense(kind: type[Topology], options: Any, depth: int) -> Stack:
    """Build dense layers without heads, with fixed-seed weights and no final norm."""
    torch.manual_seed(0)
    layers = [Dense() for _ in range(depth)]
    sites = (Site(("x",), WIDTH, True),) * depth
    return _stack(kind, options, layers, StackSpec(sites, WIDTH, 0, hidden=(WIDTH,) * depth))


def echoes(kind: type[Topology], options: Any, depth: int, *, width: int, heads: int, head_dim: int) -> Stack:
    """Build the topology of a transformer with two embeddings around layers without cost."""
    spec = transformer_spec(kind, depth, width, heads, head_dim)
    return _stack(kind, options, [Echo(site) for site in spec.sites], spec)


def transformer_spec(kind: type[Topology], depth: int, width: int, heads: int, head_dim: int) -> StackSpec:
    """Return the StackSpec of a transformer with two embeddings and, unless replaced, feed-forward layers."""
    attention, feed_forward = Site(("q", "k", "v"), heads * head_dim, True), Site(("x",), width, False)
    block = (attention,) if kind.replaces_feed_forward else (attention, feed_forward)
    return StackSpec(block * depth, width, head_dim, num_embeddings=2, hidden=(2 * width,) * depth)


def embeddings() -> tuple[Tensor, Tensor]:
    """Return tokens [B, N, D], and positions [N, D] shared by the batch."""
    torch.manual_seed(2)
    return torch.randn(2, TOKENS, WIDTH).double(), torch.randn(TOKENS, WIDTH).double()


def perturb(network: Network) -> Network:
    """Shift all parameters at random, so that none keeps a special initial value; return the network."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return network


def stray_tensors(module: nn.Module) -> Iterator[Tensor]:
    """Yield tensors that a module holds besides its parameters, buffers and modules."""
    attributes = {
        name: value for name, value in vars(module).items() if name not in ("_parameters", "_buffers", "_modules")
    }
    parameters = {id(parameter) for parameter in module.parameters()}  # nn.LSTM keeps a list of them
    return (tensor for tensor in _tensors(attributes) if id(tensor) not in parameters)


def _stack(kind: type[Topology], options: Any, layers: list[Any], spec: StackSpec) -> Stack:
    stack = Stack(layers, build_topology(kind, options, spec), nn.Identity()).double()
    stack.topology.init_layers(stack.layers)
    return stack


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | set) else ():
        yield from _tensors(inner)


def without_epsilon(stack: Stack) -> None:
    """Set the epsilon of the layers' norms near 0, so that they remove any factor of their input."""
    for module in stack.layers.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-30
