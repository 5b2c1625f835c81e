"""Small networks of any topology, in double precision."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from search_spaces.architecture import Architecture
from search_spaces.layers.attention import PortProjection, SharedProjection, SoftmaxAttention
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack, build_stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer
from search_spaces.topologies.base import Site

NORM = Norm("layer", 1e-6)


class Dense(nn.Module):
    """A layer without a token axis, its own block: [B, D] to [B, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.site = Site(("x",), width, opens_block=True)
        self.map = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.map(x))


@pytest.fixture
def transformer() -> Callable[..., Stack]:
    """Build the stack of a small causal transformer, its layers drawn from one seed, without a final norm."""

    def build(topology: str, *, depth: int = 3, width: int = 16, heads: int = 4, head_dim: int = 4) -> Stack:
        torch.manual_seed(0)
        hidden = 2 * width
        architecture = Architecture(
            depth=depth, width=width, hidden=hidden, heads=heads, head_dim=head_dim, topology=topology
        )
        style = TransformerStyle(NORM, GELU, attention_bias=True, feed_forward_bias=True, parts=2)
        stack = build_transformer(architecture, style, lambda block: SoftmaxAttention(causal=True)).double()
        stack.norm = nn.Identity()
        return stack

    return build


@pytest.fixture
def mlp() -> Callable[..., Stack]:
    """Build a small stack of dense layers, its layers drawn from one seed, without heads and without a final norm."""

    def build(topology: str, *, depth: int = 3, width: int = 16) -> Stack:
        torch.manual_seed(0)
        architecture = Architecture(depth=depth, width=width, hidden=width, topology=topology)
        stack = build_stack(architecture, [Dense(width) for _ in range(depth)], NORM, parts=1).double()
        stack.norm = nn.Identity()
        return stack

    return build


@pytest.fixture
def copy_layers() -> Callable[[Stack, Stack], None]:
    """Give the layers of one stack the weights of another's, whatever their topologies deliver."""

    def copy(source: Stack, target: Stack) -> None:
        weights = source.layers.state_dict()
        for name, module in source.layers.named_modules():
            if isinstance(module, SharedProjection) and isinstance(target.layers.get_submodule(name), PortProjection):
                for port, (weight, bias) in enumerate(
                    zip(module.qkv.weight.chunk(3), module.qkv.bias.chunk(3), strict=True)
                ):
                    weights |= {f"{name}.projections.{port}.weight": weight, f"{name}.projections.{port}.bias": bias}
                    weights |= {f"{name}.norms.{port}.{key}": value for key, value in module.norm.state_dict().items()}
                for key in ("qkv.weight", "qkv.bias", *(f"norm.{key}" for key in module.norm.state_dict())):
                    del weights[f"{name}.{key}"]
        target.layers.load_state_dict(weights)

    return copy


@pytest.fixture
def draw() -> Callable[[nn.Module], None]:
    """Move all parameters of a module to other values, so that no weight stands at its special start."""

    def move(module: nn.Module) -> None:
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))

    return move
