"""Decoders with topology resnet have the logits of Hugging Face's."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from expect import raises
from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import DECODER_STYLES, Decoder, build_decoder, count_decoder
from search_spaces.topologies.registry import TOPOLOGIES
from tests.search_spaces.models.forms import FORMS

VOCABULARY, CONTEXT = 97, 16
SQUARE = Architecture(depth=3, width=24, heads=3, head_dim=8, hidden=40)  # heads * head_dim equals the width
OBLONG = Architecture(depth=2, width=24, heads=4, head_dim=8, hidden=20)  # here it does not


def ids(*shape: int) -> Tensor:
    return torch.randint(VOCABULARY, shape or (2, CONTEXT), generator=torch.Generator().manual_seed(1))


def spread(model: nn.Module) -> None:
    """Perturb all weights, so that none is 0 or 1 by chance."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))


def load(model: Decoder, weights: dict[str, Tensor]) -> None:
    """Load all weights of the decoder."""
    tied = {"head.weight": model.head.weight} if model.head.weight is model.embedding.tokens.weight else {}
    model.load_state_dict({**weights, **tied})


def llama(architecture: Architecture) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=architecture.width,
        intermediate_size=architecture.hidden,
        num_hidden_layers=architecture.depth,
        num_attention_heads=architecture.heads,
        head_dim=architecture.head_dim,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config).eval()


def gpt2(architecture: Architecture, **options: object) -> GPT2LMHeadModel:
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=CONTEXT,
        n_embd=architecture.width,
        n_layer=architecture.depth,
        n_head=architecture.heads,
        n_inner=architecture.hidden,
        **options,
    )
    return GPT2LMHeadModel(config).eval()


def from_llama(reference: nn.Module) -> dict[str, Tensor]:
    """All of Llama's weights under our names."""
    reference_weights = dict(reference.named_parameters())
    weights = {
        "embedding.tokens.weight": reference_weights.pop("model.embed_tokens.weight"),
        "stack.norm.weight": reference_weights.pop("model.norm.weight"),
        "head.weight": reference_weights.pop("lm_head.weight"),
    }
    for block in range(reference.config.num_hidden_layers):
        layer, attention, feed_forward = (
            f"model.layers.{block}",
            f"stack.layers.{2 * block}",
            f"stack.layers.{2 * block + 1}",
        )
        q, k, v = (reference_weights.pop(f"{layer}.self_attn.{port}_proj.weight") for port in "qkv")
        gate, up = (reference_weights.pop(f"{layer}.mlp.{name}_proj.weight") for name in ("gate", "up"))
        weights |= {
            f"{attention}.project.norm.weight": reference_weights.pop(f"{layer}.input_layernorm.weight"),
            f"{attention}.project.qkv.weight": torch.cat((q, k, v)),
            f"{attention}.out.weight": reference_weights.pop(f"{layer}.self_attn.o_proj.weight"),
            f"{feed_forward}.norm.weight": reference_weights.pop(f"{layer}.post_attention_layernorm.weight"),
            f"{feed_forward}.up.weight": torch.cat((gate, up)),
            f"{feed_forward}.down.weight": reference_weights.pop(f"{layer}.mlp.down_proj.weight"),
        }
    assert not reference_weights
    return weights


def from_gpt2(reference: nn.Module) -> dict[str, Tensor]:
    """All of GPT-2's weights under our names; its maps are [inputs, outputs]."""
    reference_weights = dict(reference.named_parameters())
    names = {"wte.weight": "embedding.tokens.weight", "wpe.weight": "embedding.positions"}
    for kind in ("weight", "bias"):
        names[f"ln_f.{kind}"] = f"stack.norm.{kind}"
        for block in range(reference.config.n_layer):
            attention, feed_forward = f"stack.layers.{2 * block}", f"stack.layers.{2 * block + 1}"
            names |= {
                f"h.{block}.ln_1.{kind}": f"{attention}.project.norm.{kind}",
                f"h.{block}.attn.c_attn.{kind}": f"{attention}.project.qkv.{kind}",
                f"h.{block}.attn.c_proj.{kind}": f"{attention}.out.{kind}",
                f"h.{block}.ln_2.{kind}": f"{feed_forward}.norm.{kind}",
                f"h.{block}.mlp.c_fc.{kind}": f"{feed_forward}.up.{kind}",
                f"h.{block}.mlp.c_proj.{kind}": f"{feed_forward}.down.{kind}",
            }
    weights = {}
    if "lm_head.weight" in reference_weights:  # otherwise tied
        weights["head.weight"] = reference_weights.pop("lm_head.weight")
    for name, weight in reference_weights.items():
        name = name.removeprefix("transformer.")
        weights[names.pop(name)] = weight.mT if ".c_" in name and weight.ndim == 2 else weight
    assert not names
    return weights


@pytest.mark.parametrize("architecture", [SQUARE, OBLONG], ids=str)
def test_the_resnet_llama_has_the_logits_of_hugging_face(architecture: Architecture) -> None:
    reference = llama(architecture)
    spread(reference)
    model = build_decoder(architecture, "llama", VOCABULARY, CONTEXT)
    load(model, from_llama(reference))
    with torch.no_grad():
        torch.testing.assert_close(model(ids()), reference(ids()).logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize("tied", [True, False])
def test_the_resnet_gpt2_has_the_logits_of_hugging_face(tied: bool) -> None:
    reference = gpt2(SQUARE, tie_word_embeddings=tied)
    spread(reference)
    model = build_decoder(SQUARE, "gpt2", VOCABULARY, CONTEXT, tied=tied)
    load(model, from_gpt2(reference))
    with torch.no_grad():
        torch.testing.assert_close(model(ids()), reference(ids()).logits, rtol=0, atol=1e-4)


def test_the_resnet_rmt_style_is_the_gpt2_of_hugging_face_with_options_and_without_biases() -> None:
    reference = gpt2(
        SQUARE,
        tie_word_embeddings=False,
        activation_function="gelu",
        layer_norm_epsilon=1e-6,
        reorder_and_upcast_attn=True,
        scale_attn_by_inverse_layer_idx=True,
        attn_implementation="eager",
    )
    spread(reference)
    weights = from_gpt2(reference)
    biases = {name for name in weights if name.endswith(".bias")}
    for name in biases:
        nn.init.zeros_(weights[name])
    model = build_decoder(SQUARE, "rmt", VOCABULARY, CONTEXT)
    load(model, {name: weight for name, weight in weights.items() if name not in biases})
    with torch.no_grad():
        torch.testing.assert_close(model(ids()), reference(ids()).logits, rtol=0, atol=1e-4)


def test_the_resnet_lm1b_is_a_causal_pre_norm_encoder_with_sinusoidal_positions() -> None:
    model = build_decoder(SQUARE, "lm1b", VOCABULARY, CONTEXT)
    spread(model)
    width, half = SQUARE.width, SQUARE.width // 2
    waves = torch.zeros(CONTEXT, width)
    for n in range(CONTEXT):
        for i in range(half):
            angle = n * math.exp(i * -math.log(10_000.0) / (half - 1))
            waves[n, i], waves[n, half + i] = math.sin(angle), math.cos(angle)
    x = model.embedding.tokens.weight[ids()] + waves
    for block in range(SQUARE.depth):
        layer = nn.TransformerEncoderLayer(
            width, SQUARE.heads, SQUARE.hidden, 0.0, "relu", 1e-6, batch_first=True, norm_first=True
        )
        attention, feed_forward = model.stack.layers[2 * block], model.stack.layers[2 * block + 1]
        weights = {
            "self_attn.in_proj_weight": attention.project.qkv.weight,
            "self_attn.in_proj_bias": torch.zeros(3 * width),
            "self_attn.out_proj.weight": attention.out.weight,
            "self_attn.out_proj.bias": torch.zeros(width),
        }
        for to, module in {
            "norm1": attention.project.norm,
            "norm2": feed_forward.norm,
            "linear1": feed_forward.up,
            "linear2": feed_forward.down,
        }.items():
            weights |= {f"{to}.weight": module.weight, f"{to}.bias": module.bias}
        layer.load_state_dict(weights)
        x = layer(x, src_mask=nn.Transformer.generate_square_subsequent_mask(CONTEXT), is_causal=True)
    expected = nn.functional.linear(model.stack.norm(x), model.head.weight, model.head.bias)
    torch.testing.assert_close(model(ids()), expected, rtol=0, atol=1e-4)


def is_causal(style: str, topology: str) -> None:
    """Assert that later tokens change only later outputs, whatever the length."""
    model = build_decoder(replace(OBLONG, topology=topology), style, VOCABULARY, CONTEXT).eval()
    spread(model)
    whole = ids(2, 12)
    variant = torch.cat((whole[:, :7], (whole[:, 7:] + 1) % VOCABULARY), dim=1)
    with torch.no_grad():
        expected, other = model(whole), model(variant)
        torch.testing.assert_close(other[:, :7], expected[:, :7], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(model(whole[:, :7]), expected[:, :7], rtol=1e-4, atol=1e-4)
        assert not torch.allclose(other[:, 7:], expected[:, 7:], atol=1e-2)


def test_no_position_sees_later_ones_in_any_topology() -> None:
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                is_causal("llama", topology)


@pytest.mark.parametrize("style", DECODER_STYLES)
def test_no_position_sees_later_ones_in_any_style(style: str) -> None:
    with grouped() as case:
        for topology in FORMS:
            with case(topology):
                is_causal(style, topology)


@pytest.mark.slow
def test_no_position_sees_later_ones_in_any_topology_and_style() -> None:
    with grouped() as case:
        for style, topology in product(DECODER_STYLES, TOPOLOGIES.names()):
            with case(f"{topology} in {style}"):
                is_causal(style, topology)


def test_weights_of_gpt2_start_with_the_spread_of_hugging_face() -> None:
    architecture = Architecture(depth=8, width=64, heads=4, head_dim=16, hidden=256)
    torch.manual_seed(0)
    weights = dict(build_decoder(architecture, "gpt2", VOCABULARY, CONTEXT, tied=True).named_parameters())
    reference_weights = from_gpt2(gpt2(architecture))
    assert weights.keys() == reference_weights.keys()
    for name, weight in reference_weights.items():
        torch.testing.assert_close(weights[name].std(), weight.std(), rtol=0.1, atol=0, msg=name)
        torch.testing.assert_close(weights[name].mean(), weight.mean(), rtol=0, atol=2e-3, msg=name)


def test_weights_of_llama_start_with_the_spread_of_hugging_face() -> None:
    architecture = Architecture(depth=2, width=64, heads=4, head_dim=16, hidden=96)
    torch.manual_seed(0)
    weights = dict(build_decoder(architecture, "llama", VOCABULARY, CONTEXT).named_parameters())
    reference_weights = from_llama(llama(architecture))
    assert weights.keys() == reference_weights.keys()
    for name, weight in reference_weights.items():
        torch.testing.assert_close(weights[name].std(), weight.std(), rtol=0.1, atol=0, msg=name)


def test_weights_of_lm1b_start_xavier_uniform_by_port() -> None:
    architecture = Architecture(depth=1, width=64, heads=2, head_dim=16, hidden=96)
    model = build_decoder(architecture, "lm1b", VOCABULARY, CONTEXT)
    bounds = [
        *((weight, 64 + 32) for weight in model.stack.layers[0].project.qkv.weight.chunk(3)),
        (model.stack.layers[0].out.weight, 32 + 64),
        (model.stack.layers[1].up.weight, 64 + 96),
        (model.head.weight, 64 + VOCABULARY),
    ]
    for weight, fans in bounds:
        torch.testing.assert_close(weight.abs().max().item(), math.sqrt(6 / fans), rtol=0.02, atol=0)
    assert 0 < model.head.bias.abs().max() < 1e-5
    assert 0.95 < model.embedding.tokens.weight.std() < 1.05


def test_layers_are_not_scaled_by_depth_where_the_topology_does_so() -> None:
    architecture = replace(SQUARE, depth=8, topology="rmt(keys=8)")
    model = build_decoder(architecture, "gpt2", VOCABULARY, CONTEXT)
    torch.testing.assert_close(model.stack.layers[1].down.weight.std().item(), 0.02, rtol=0.1, atol=0)


def test_a_topology_initializes_its_linear_maps() -> None:
    for style in DECODER_STYLES:
        model = build_decoder(replace(OBLONG, topology="hyper"), style, VOCABULARY, CONTEXT)
        maps = [module for module in model.stack.topology.modules() if isinstance(module, nn.Linear)]
        assert maps
        assert not any(module.weight.any() for module in maps), style


@pytest.mark.parametrize(
    "style", [style if style == "llama" else pytest.param(style, marks=pytest.mark.slow) for style in DECODER_STYLES]
)
def test_a_decoder_compiles_to_one_graph_with_the_same_logits(style: str) -> None:
    torch.compiler.reset()
    model = build_decoder(OBLONG, style, VOCABULARY, CONTEXT)
    graph = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(graph(ids()), model(ids()))


def test_a_tied_head_is_the_embedding() -> None:
    model = build_decoder(SQUARE, "gpt2", VOCABULARY, CONTEXT, tied=True)
    assert model.head.weight is model.embedding.tokens.weight


def test_more_tokens_than_positions_are_refused() -> None:
    for style in DECODER_STYLES:
        model = build_decoder(SQUARE, style, VOCABULARY, CONTEXT)
        with raises("too-large", option="tokens", value=17, most=16):
            model(ids(1, 17))


def test_error_of_an_unknown_style_names_the_nearest() -> None:
    with raises("unknown-name", option="style", value="lama", nearest="llama"):
        build_decoder(SQUARE, "lama", VOCABULARY, CONTEXT)
    with raises("unknown-name", option="style", value="gpt-2", nearest="gpt2"):
        count_decoder(SQUARE, "gpt-2", VOCABULARY, CONTEXT)
