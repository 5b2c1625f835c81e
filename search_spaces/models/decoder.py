"""Text decoders: with topology resnet, style `llama` equals Hugging Face's LLaMA, and `gpt2` its GPT-2.

Shapes: B = batch, N = tokens, C = context (maximum number of tokens), V = vocabulary, D = width.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SharedProjection, SoftmaxAttention
from search_spaces.layers.distance import DistanceAttention, DistanceBias
from search_spaces.layers.embedding import Embedding, SinusoidalPositions, Tokens, TokensAndPositions
from search_spaces.layers.feed_forward import GELU, GELU_TANH, RELU, SWIGLU
from search_spaces.layers.norm import Norm
from search_spaces.layers.rotary import rotary_by_block
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.models.text_networks import check_length, get_style
from search_spaces.support.count import Count, linear
from search_spaces.support.lecun_init import init_lecun
from search_spaces.topologies.base import NORMED


class Decoder(nn.Module):
    """Token embeddings, a causal transformer stack, and a linear map to the logits of the next token.

    Attributes:
        style: Its style, a name of DECODER_STYLES.
        context: Maximum number of tokens.
    """

    def __init__(self, embedding: Embedding, stack: Stack, head: nn.Linear, style: str, context: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.head = head
        self.style = style
        self.context = context

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids [B, N] to logits [B, N, V]. Raises UserError for more tokens than the decoder has positions."""
        check_length(ids, self.context, "decoder")
        return self.head(self.stack(*self.embedding(ids)))  # type: ignore[no-any-return]  # nn.Module returns Any


Attend = Callable[[int], nn.Module]
Initial = Literal["", "lecun"]


@dataclass(frozen=True, slots=True)
class DecoderStyle:
    """Design choices in which published decoders differ: see DECODER_STYLES.

    Attributes:
        layers: The style of the transformer's layers.
        embedding: Built from vocabulary, context and width; returns as many embeddings as `layers` says.
        attend: Maps the architecture and the context to the attention of each block.
        head_bias: Whether the map to the vocabulary has a bias.
        initialize: Initializes a decoder's weights, except those of its topology, which are initialized already.
    """

    layers: TransformerStyle
    embedding: Callable[[int, int, int], Embedding]
    attend: Callable[[Architecture, int], Attend]
    head_bias: bool
    initialize: Callable[[Decoder], None]


def build_decoder(
    architecture: Architecture, style: str, vocabulary: int, context: int, *, tied: bool = False, initial: Initial = ""
) -> Decoder:
    """Build a decoder over `vocabulary` ids and at most `context` tokens; `tied` shares embedding and output weights.

    `initial` overrides the style's initialization, except for the topology's weights.

    Raises:
        UserError: An unknown style, an architecture without heads, or one that its topology cannot be used with.
    """
    parts = get_style(DECODER_STYLES, style)
    stack = build_transformer(architecture, parts.layers, parts.attend(architecture, context))
    embedding = parts.embedding(vocabulary, context, architecture.width)
    head = nn.Linear(architecture.width, vocabulary, bias=parts.head_bias)
    model = Decoder(embedding, stack, head, style, context)
    (_lecun if initial == "lecun" else parts.initialize)(model)
    stack.topology.init_layers(stack.layers)
    if tied:
        head.weight = embedding.tokens.weight
    return model


def count_decoder(
    architecture: Architecture, style: str, vocabulary: int, context: int, *, tied: bool = False
) -> Count:
    """Count `build_decoder` in closed form, for one text of `context` tokens with full attention and output logits.

    Raises:
        UserError: As `build_decoder`.
    """
    parts = get_style(DECODER_STYLES, style)
    width = architecture.width
    positions = parts.layers.num_embeddings - 1  # each embedding but the first is a table of positions
    tables = Count(params=vocabulary * width + positions * context * width)
    head = linear(width, vocabulary, bias=parts.head_bias).at_positions(context) + Count(
        params=-tied * vocabulary * width
    )
    return tables + count_transformer(architecture, parts.layers, context) + head


def _softmax(architecture: Architecture, context: int) -> Attend:
    return lambda block: SoftmaxAttention(causal=True)


def _cooled_by_depth(architecture: Architecture, context: int) -> Attend:
    return lambda block: SoftmaxAttention(causal=True, temperature=block + 1)


def _distant(architecture: Architecture, context: int) -> Attend:
    heads = architecture.by_block("heads")
    penalties = {number: DistanceBias(number, context) for number in set(heads)}
    return lambda block: DistanceAttention(penalties[heads[block]], temperature=block + 1)


def _normal(model: Decoder) -> None:
    """Draw all weights from N(0, 0.02^2); biases are 0."""
    for table in model.embedding.parameters():
        nn.init.normal_(table, std=0.02)
    for module in _linear_maps(model):
        nn.init.normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def _normal_by_depth(model: Decoder) -> None:
    """As `_normal`, with maps to the stream scaled by 1 / sqrt(layers) (Radford et al., 2019, section 2.3)."""
    _normal(model)
    for t, layer in enumerate(model.stack.layers):
        if model.stack.topology.input_mode_at(t) in NORMED:
            continue  # the topology scales or norms what is written to the stream
        for name, module in layer.named_modules():
            if isinstance(module, nn.Linear) and name in ("out", "down"):
                nn.init.normal_(module.weight, std=0.02 / math.sqrt(len(model.stack.layers)))


def _xavier(model: Decoder) -> None:
    """Draw maps Xavier-uniform, biases from N(0, (1e-6)^2) and embeddings from N(0, 1)."""
    for table in model.embedding.parameters():
        nn.init.normal_(table)
    for module in _linear_maps(model):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.normal_(module.bias, std=1e-6)
    for projection in model.stack.layers.modules():
        if isinstance(projection, SharedProjection):  # several maps in one, each with its own fan-out
            for weight in projection.qkv.weight.detach().chunk(projection.parts):
                nn.init.xavier_uniform_(weight)


def _lecun(model: Decoder) -> None:
    """Draw all weights from N(0, 1 / fan-in), except the topology's; biases are 0.

    The fan-in of an embedding table is its width, as in flax, since each input is one id.
    """
    for table in model.embedding.parameters():
        nn.init.normal_(table, std=table.shape[-1] ** -0.5)
    init_lecun(_linear_maps(model))


def _linear_maps(model: Decoder) -> list[nn.Linear]:
    return [module for module in (*model.stack.layers.modules(), model.head) if isinstance(module, nn.Linear)]


DECODER_STYLES: Mapping[str, DecoderStyle] = {
    # Touvron et al. (2023), with the values of GaLore and ANCRe.
    "llama": DecoderStyle(
        TransformerStyle(Norm("rms", 1e-6), SWIGLU, attention_bias=False, feed_forward_bias=False, num_embeddings=1),
        Tokens,
        partial(rotary_by_block, causal=True),
        head_bias=False,
        initialize=_normal,
    ),
    # Radford et al. (2019).
    "gpt2": DecoderStyle(
        TransformerStyle(Norm("layer", 1e-5), GELU_TANH, attention_bias=True, feed_forward_bias=True, num_embeddings=2),
        TokensAndPositions,
        _softmax,
        head_bias=False,
        initialize=_normal_by_depth,
    ),
    # The paper on residual matrix transformers and its baselines (Mak and Flanigan, 2025, section 2 and appendix C.1):
    # GPT-2 without biases, with attention logits in fp32, divided by the block's number from 1.
    "rmt": DecoderStyle(
        TransformerStyle(
            Norm("layer-scale", 1e-6), GELU, attention_bias=False, feed_forward_bias=False, num_embeddings=2
        ),
        TokensAndPositions,
        _cooled_by_depth,
        head_bias=False,
        initialize=_normal_by_depth,
    ),
    # As `rmt`, but like its official code: distances instead of positions, and GPT-2's approximate GELU. Its norms of
    # the residual matrix belong to the topology: rmt(norm=rms).
    "rmt-code": DecoderStyle(
        TransformerStyle(
            Norm("layer-scale", 1e-6), GELU_TANH, attention_bias=False, feed_forward_bias=False, num_embeddings=1
        ),
        Tokens,
        _distant,
        head_bias=False,
        initialize=_normal_by_depth,
    ),
    # Flax's example of that name, the base of DeepCrossAttention's ablations (Heddes et al., 2025, table 6).
    "lm1b": DecoderStyle(
        TransformerStyle(Norm("layer", 1e-6), RELU, attention_bias=False, feed_forward_bias=True, num_embeddings=1),
        SinusoidalPositions,
        _softmax,
        head_bias=True,
        initialize=_xavier,
    ),
}
