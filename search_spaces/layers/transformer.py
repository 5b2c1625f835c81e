"""The transformer's stack: blocks of an attention layer and a feed-forward layer.

Shapes: N = tokens, D = width.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from search_spaces.architecture import Architecture
from search_spaces.count import Count
from search_spaces.errors import UserError
from search_spaces.layers.attention import Attention, count_attention, count_softmax
from search_spaces.layers.feed_forward import Activation, FeedForward, count_feed_forward
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack, build_stack, count_stack
from search_spaces.topologies.base import Site, Topology
from search_spaces.topologies.registry import load


@dataclass(frozen=True, slots=True)
class TransformerStyle:
    """What the layers of a transformer are made of where published models differ: set by the task, not searched.

    Attributes:
        norm: Before each layer and at the end.
        activation: Inside feed-forward layers.
        attention_bias: Whether the linear maps of attention layers have one.
        feed_forward_bias: Whether those of feed-forward layers have one.
        parts: How many embeddings make the input: 2 where positions are learned, 1 where they are not.
        dropout: Share of features dropped while training: of each layer's output, and inside feed-forward layers.
    """

    norm: Norm
    activation: Activation
    attention_bias: bool
    feed_forward_bias: bool
    parts: int
    dropout: float = 0.0


def build_transformer(architecture: Architecture, style: TransformerStyle, attend: Callable[[int], nn.Module]) -> Stack:
    """Blocks of attention and feed-forward layers, wired by the architecture's topology.

    `attend` makes what maps queries, keys and values to outputs, given the block's number from 0.

    Raises:
        UserError: An architecture without heads, or one that its topology cannot wire.
    """
    kind = _wiring(architecture)
    layers = []
    for block in range(architecture.depth):
        attention = Attention(
            architecture.width,
            architecture.heads,
            architecture.head_dim,
            attend(block),
            style.norm,
            kind.delivers,
            bias=style.attention_bias,
            dropout=style.dropout,
        )
        feed_forward = FeedForward(
            architecture.width,
            architecture.hidden,
            style.activation,
            style.norm,
            kind.delivers,
            bias=style.feed_forward_bias,
            dropout=style.dropout,
        )
        layers += [attention, feed_forward]
    return build_stack(architecture, layers, style.norm, parts=style.parts)


def _wiring(architecture: Architecture) -> type[Topology]:
    """The topology, for an architecture that a transformer can have."""
    if architecture.model:
        raise UserError(f"this task has a network of its own and takes none of timm's, got model={architecture.model}.")
    if architecture.head_dim == 0:
        raise UserError(f"a transformer needs heads and head_dim of at least 1, got {architecture}.")
    return load(architecture.topology)[0]


def count_transformer(
    architecture: Architecture, style: TransformerStyle, tokens: int, attend: Count | None = None
) -> Count:
    """Closed form of that stack for one sequence of `tokens`.

    `attend` is the count of what attends in one block: without it, exact softmax attention.
    """
    kind = _wiring(architecture)
    width, heads, head_dim = architecture.width, architecture.heads, architecture.head_dim
    attention = count_attention(width, heads, head_dim, style.norm, kind.delivers, bias=style.attention_bias)
    feed_forward = count_feed_forward(
        width, architecture.hidden, style.activation, style.norm, kind.delivers, bias=style.feed_forward_bias
    )
    block = (attention + feed_forward).times(tokens) + (attend or count_softmax(heads, head_dim, tokens))
    sites = [Site(("q", "k", "v"), heads * head_dim, True), Site(("x",), width, False)] * architecture.depth
    return count_stack(
        architecture, sites, block.repeated(architecture.depth), style.norm, positions=tokens, parts=style.parts
    )
