"""Decoders as folders that transformers loads: config.json, model.safetensors and the tokenizer's files.

Style `llama` is transformers' LLaMA, or its Mistral without window if the heads do not divide the width, which LLaMA's
config demands. Style `gpt2` is GPT-2, and `rmt` GPT-2 with options and with biases of 0.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nas.costs.random_inputs import RandomInputs
from nas.exporters.counterpart import check_heads, check_plain, provenance
from nas.exporters.export_format import (
    DynamicAxes,
    ExportError,
    Forward,
    inner_network,
    input_format_of,
    run_export_step,
)
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import Record
from search_spaces.models.decoder import DECODER_STYLES, Decoder
from search_spaces.support.errors import UserError
from tasks.data.batches import tensors
from tasks.input_formats import TextInputs


@dataclass(frozen=True, slots=True)
class _Counterpart:
    """A model of transformers.

    Attributes:
        model: Its class.
        config: Its config's class.
        arguments: Maps a decoder and its architecture to the config's arguments.
        weights: Maps a decoder and its depth to the model's weights.
        check: Raises an ExportError for an architecture that it cannot have.
    """

    model: str
    config: str
    arguments: Callable[[Decoder, Architecture], dict[str, Any]]
    weights: Callable[[Decoder, int], dict[str, Tensor]]
    check: Callable[[Architecture], None]


def transformers_package() -> Any:
    """Return the module transformers. Raises UserError if it is missing."""
    try:
        import transformers  # takes a second
    except ImportError as error:
        message = f'a folder for transformers needs more packages: pip install ".[hugging-face]" ({error}).'
        raise UserError("needs-extra", message, extra="hugging-face") from error
    return transformers


def check_transformers(network: nn.Module, record: Record) -> None:
    """Raise ExportError if transformers has no model that equals this network."""
    inner = inner_network(network)
    if not isinstance(inner, Decoder):
        kind = type(inner).__name__
        raise ExportError(f"transformers has no counterpart of {kind}", problem="class", network=kind)
    if inner.style not in _COUNTERPARTS:
        message = f"transformers has no decoder with {_MISSING[inner.style]}, as style {inner.style} has"
        raise ExportError(message, problem="style", style=inner.style, choices=(*_COUNTERPARTS,))
    check_plain("a decoder of transformers", record.architecture)
    _COUNTERPARTS[inner.style](record.architecture).check(record.architecture)


def write_transformers(
    network: nn.Module, draws: RandomInputs, axes: DynamicAxes, path: Path, record: Record
) -> Forward:
    """Write a folder that `transformers.AutoModelForCausalLM.from_pretrained` loads."""
    transformers, inner = transformers_package(), inner_network(network)
    assert isinstance(inner, Decoder)
    text = input_format_of(network)
    tokenizer = _tokenizer(text) if isinstance(text, TextInputs) else None
    counterpart = _COUNTERPARTS[inner.style](record.architecture)
    config = run_export_step(
        getattr(transformers, counterpart.config),
        **counterpart.arguments(inner, record.architecture),
        vocab_size=inner.head.out_features,
        tie_word_embeddings=inner.head.weight is inner.embedding.tokens.weight,
        bos_token_id=None,
        eos_token_id=None if tokenizer is None else tokenizer.eos_token_id,
        nas=provenance(record),
    )
    with _no_bars(transformers):
        twin = run_export_step(getattr(transformers, counterpart.model), config).to(inner.head.weight.dtype)
        weights = {**counterpart.weights(inner, record.architecture.depth), "lm_head.weight": inner.head.weight}
        run_export_step(twin.load_state_dict, weights)
        run_export_step(twin.save_pretrained, path)
        if tokenizer is not None:
            run_export_step(tokenizer.save_pretrained, path)
        loaded = run_export_step(transformers.AutoModelForCausalLM.from_pretrained, path).eval()
    return torch.no_grad()(lambda inputs: [loaded(*tensors(inputs)).logits])


@contextmanager
def _no_bars(transformers: Any) -> Iterator[None]:
    """Hide the progress bars of transformers, which a millisecond's work would print too."""
    logging = transformers.utils.logging
    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()


def _tokenizer(text: TextInputs) -> Any:
    """Return transformers' tokenizer with the ids of training: none is added at either end."""
    import tokenizers

    from tasks.language.tokenizer import Tokenizer

    inner = tokenizers.Tokenizer.from_str(text.tokenizer)
    end = inner.id_to_token(Tokenizer(text.tokenizer, "the task").boundary)
    inner.post_processor = None
    inner.no_truncation()
    inner.no_padding()
    return transformers_package().PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=end, model_max_length=text.context
    )


def _llama_arguments(decoder: Decoder, architecture: Architecture) -> dict[str, Any]:
    return {
        "hidden_size": architecture.width,
        "intermediate_size": architecture.hidden,
        "num_hidden_layers": architecture.depth,
        "num_attention_heads": architecture.heads,
        "num_key_value_heads": architecture.heads,
        "head_dim": architecture.head_dim,
        "max_position_embeddings": decoder.context,
        "rms_norm_eps": DECODER_STYLES[decoder.style].layers.norm.eps,
    }


def _mistral_arguments(decoder: Decoder, architecture: Architecture) -> dict[str, Any]:
    return {**_llama_arguments(decoder, architecture), "sliding_window": None}


def _llama_weights(decoder: Decoder, depth: int) -> dict[str, Tensor]:
    weight = decoder.get_parameter
    weights = {
        "model.embed_tokens.weight": decoder.embedding.tokens.weight,
        "model.norm.weight": weight("stack.norm.weight"),
    }
    for block in range(depth):
        layer, attention, feed_forward = _layers("model.layers", block)
        q, k, v = weight(f"{attention}.project.qkv.weight").chunk(3)
        gate, up = weight(f"{feed_forward}.up.weight").chunk(2)
        weights |= {
            f"{layer}.input_layernorm.weight": weight(f"{attention}.project.norm.weight"),
            f"{layer}.self_attn.q_proj.weight": q,
            f"{layer}.self_attn.k_proj.weight": k,
            f"{layer}.self_attn.v_proj.weight": v,
            f"{layer}.self_attn.o_proj.weight": weight(f"{attention}.out.weight"),
            f"{layer}.post_attention_layernorm.weight": weight(f"{feed_forward}.norm.weight"),
            f"{layer}.mlp.gate_proj.weight": gate,
            f"{layer}.mlp.up_proj.weight": up,
            f"{layer}.mlp.down_proj.weight": weight(f"{feed_forward}.down.weight"),
        }
    return weights


def _gpt2_arguments(decoder: Decoder, architecture: Architecture) -> dict[str, Any]:
    cooled = decoder.style == "rmt"
    return {
        "n_embd": architecture.width,
        "n_inner": architecture.hidden,
        "n_layer": architecture.depth,
        "n_head": architecture.heads,
        "n_positions": decoder.context,
        "layer_norm_epsilon": DECODER_STYLES[decoder.style].layers.norm.eps,
        "activation_function": "gelu" if cooled else "gelu_new",
        "scale_attn_by_inverse_layer_idx": cooled,
    }


def _gpt2_weights(decoder: Decoder, depth: int) -> dict[str, Tensor]:
    weights = {
        "transformer.wte.weight": decoder.embedding.tokens.weight,
        "transformer.wpe.weight": decoder.get_parameter("embedding.positions"),
    }
    modules = {"transformer.ln_f": "stack.norm"}
    for block in range(depth):
        layer, attention, feed_forward = _layers("transformer.h", block)
        modules |= {
            f"{layer}.ln_1": f"{attention}.project.norm",
            f"{layer}.attn.c_attn": f"{attention}.project.qkv",
            f"{layer}.attn.c_proj": f"{attention}.out",
            f"{layer}.ln_2": f"{feed_forward}.norm",
            f"{layer}.mlp.c_fc": f"{feed_forward}.up",
            f"{layer}.mlp.c_proj": f"{feed_forward}.down",
        }
    for name, ours in modules.items():
        module: Any = decoder.get_submodule(ours)
        weights[f"{name}.weight"] = module.weight.mT if module.weight.dim() == 2 else module.weight  # inputs first
        outputs = module.weight.new_zeros(len(module.weight))
        weights[f"{name}.bias"] = outputs if module.bias is None else module.bias
    return weights


def _layers(blocks: str, block: int) -> tuple[str, str, str]:
    """Return the names of a block there, and of its attention and its feed-forward layer here."""
    return f"{blocks}.{block}", f"stack.layers.{2 * block}", f"stack.layers.{2 * block + 1}"


def _check_even(architecture: Architecture) -> None:
    if architecture.head_dim % 2:
        message = f"head_dim of transformers' LLaMA is even, and here it is {architecture.head_dim}"
        raise ExportError(message, problem="heads", head_dim=architecture.head_dim)


def _check_gpt2(architecture: Architecture) -> None:
    check_heads("transformers' GPT-2", architecture)


def _llama_or_mistral(architecture: Architecture) -> _Counterpart:
    return _MISTRAL if architecture.width % architecture.heads else _LLAMA


_LLAMA = _Counterpart("LlamaForCausalLM", "LlamaConfig", _llama_arguments, _llama_weights, _check_even)
_MISTRAL = _Counterpart("MistralForCausalLM", "MistralConfig", _mistral_arguments, _llama_weights, _check_even)
_GPT2 = _Counterpart("GPT2LMHeadModel", "GPT2Config", _gpt2_arguments, _gpt2_weights, _check_gpt2)
_COUNTERPARTS: Mapping[str, Callable[[Architecture], _Counterpart]] = {
    "llama": _llama_or_mistral,
    "gpt2": lambda architecture: _GPT2,
    "rmt": lambda architecture: _GPT2,
}
"""Style -> the model that equals an architecture in it."""

_MISSING: Mapping[str, str] = {
    "rmt-code": "attention that is cooled by depth and biased by distance",
    "lm1b": "sinusoidal positions and a bias of the logits",
}
"""Style without counterpart -> what no model has."""
