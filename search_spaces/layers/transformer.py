"""The transformer stack: blocks of an attention layer and a feed-forward layer, or its replacement by the topology.

Shapes: N = tokens, D = width.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import Attention, count_attention, count_softmax
from search_spaces.layers.feed_forward import Activation, FeedForward, count_feed_forward
from search_spaces.layers.modulated import AdaLNZero, count_modulation
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack, build_stack, count_stack
from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from search_spaces.topologies.base import Site
from search_spaces.topologies.build import projects_values
from search_spaces.topologies.registry import resolve_topology


@dataclass(frozen=True, slots=True)
class TransformerStyle:
    """Design choices in which published transformers differ; set by the task, not searched.

    Attributes:
        norm: The norm before each layer and at the end.
        activation: The activation of feed-forward layers.
        attention_bias: Whether the linear maps of attention layers have biases.
        feed_forward_bias: Whether those of feed-forward layers have biases.
        num_embeddings: Number of embeddings that make up the input: 2 with learned positions, else 1.
        dropout: Dropout rate, on each layer's output and inside feed-forward layers.
        takes_condition: Whether a condition [B, D] scales, shifts and gates every layer; norms are then BARE.
    """

    norm: Norm
    activation: Activation
    attention_bias: bool
    feed_forward_bias: bool
    num_embeddings: int
    dropout: float = 0.0
    takes_condition: bool = False


def build_transformer(architecture: Architecture, style: TransformerStyle, attend: Callable[[int], nn.Module]) -> Stack:
    """Build blocks of attention and feed-forward layers, connected by the architecture's topology.

    `attend` returns the attention module (queries, keys and values to outputs) of a block, counted from 0.

    Raises:
        UserError: An architecture without heads, or one that its topology cannot be used with.
    """
    _check(architecture)
    blocks = [architecture.at_block(number) for number in range(architecture.depth)]
    values = _own_values(architecture, _sites_of(blocks))
    layers = [
        layer for number, block in enumerate(blocks) for layer in _layers(block, style, attend(number), values[number])
    ]
    return build_stack(architecture, layers, style.norm, num_embeddings=style.num_embeddings)


def _layers(block: Architecture, style: TransformerStyle, attend: nn.Module, values: bool) -> list[nn.Module]:
    topology, options = resolve_topology(block.topology)
    input_mode, norm = topology.input_mode_of(options), None if style.takes_condition else style.norm
    biases = style.attention_bias, style.feed_forward_bias
    layers: list[nn.Module] = [
        Attention(
            block.width, block.heads, block.head_dim, attend, norm, input_mode,
            bias=biases[0], dropout=style.dropout, values=values,
        )
    ]  # fmt: skip
    if not topology.replaces_feed_forward:
        layers.append(
            FeedForward(
                block.width, block.hidden, style.activation, norm, input_mode, bias=biases[1], dropout=style.dropout
            )
        )
    return [AdaLNZero(layer, block.width, input_mode) for layer in layers] if style.takes_condition else layers


def _check(architecture: Architecture) -> None:
    if architecture.model:
        message = f"this task builds its own network and takes no timm model, got model={architecture.model}."
        raise UserError("unsupported", message, option="model", value=architecture.model)
    if architecture.head_dim == 0:
        message = f"a transformer needs heads and head_dim of at least 1, got {architecture}."
        raise UserError("out-of-range", message, option="heads", value=architecture.heads, least=1)


def count_transformer(
    architecture: Architecture,
    style: TransformerStyle,
    tokens: int,
    attend: Callable[[int, int, int], Count] = count_softmax,
) -> Count:
    """Count `build_transformer` in closed form, for one sequence of `tokens`.

    `attend` counts the attention of one block, from heads, head dim and tokens; by default exact softmax attention.
    """
    _check(architecture)
    blocks = [architecture.at_block(number) for number in range(architecture.depth)]
    sites, layers = _sites_of(blocks), Count()
    for (block, values), number in Counter(zip(blocks, _own_values(architecture, sites), strict=True)).items():
        layers += _count_block(block, style, tokens, attend, values).copies(number)
    return count_stack(architecture, sites, layers, style.norm, positions=tokens, num_embeddings=style.num_embeddings)


def _own_values(architecture: Architecture, sites: Sequence[Site]) -> list[bool]:
    """Return for each block whether its attention layer projects its own values."""
    values = projects_values(architecture, sites)
    return [projects for projects, site in zip(values, sites, strict=True) if site.attends]


def _sites_of(blocks: Sequence[Architecture]) -> list[Site]:
    sites_by_block = {block: _sites(block) for block in dict.fromkeys(blocks)}
    return [site for block in blocks for site in sites_by_block[block]]


def _sites(block: Architecture) -> tuple[Site, ...]:
    attention = Site(("q", "k", "v"), block.heads * block.head_dim, True)
    if resolve_topology(block.topology)[0].replaces_feed_forward:
        return (attention,)
    return attention, Site(("x",), block.width, False)


def _count_block(
    block: Architecture, style: TransformerStyle, tokens: int, attend: Callable[[int, int, int], Count], values: bool
) -> Count:
    width, (topology, options) = block.width, resolve_topology(block.topology)
    input_mode = topology.input_mode_of(options)
    layers = count_attention(
        width, block.heads, block.head_dim, style.norm, input_mode, bias=style.attention_bias, values=values
    )
    layers = layers.at_positions(tokens) + attend(block.heads, block.head_dim, tokens)
    if not topology.replaces_feed_forward:
        layers += count_feed_forward(
            width, block.hidden, style.activation, style.norm, input_mode, bias=style.feed_forward_bias
        ).at_positions(tokens)
    if style.takes_condition:
        for site in _sites(block):
            layers += count_modulation(site.features, width, input_mode)
    return layers
