"""Costs of decoders: the closed form, two counters and a paper's formula."""

from collections.abc import Callable, Iterable

import pytest
import torch
from torch import Tensor, nn

from grouped import grouped
from nas.costs.count import meta_device
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import DECODER_STYLES, build_decoder, count_decoder
from search_spaces.support.count import Count
from search_spaces.topologies.registry import TOPOLOGIES

VOCABULARY = 97
Agree = Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]


EVERY = [*TOPOLOGIES.names(), "rezero(norms=false)"]


def check_counts(style: str, topologies: Iterable[str], tokens: int, tied: bool, agree: Agree) -> None:
    """Assert that counters and closed form agree on decoders with these topologies."""
    with grouped() as case:
        for topology in topologies:
            architecture = Architecture(depth=2, width=24, heads=5, head_dim=8, hidden=20, topology=topology)
            with case(f"{style}, {topology}, {tokens} tokens"):
                with meta_device():
                    model = build_decoder(architecture, style, VOCABULARY, tokens, tied=tied)
                    example = torch.zeros(1, tokens, dtype=torch.long)
                agree(model, (example,), count_decoder(architecture, style, VOCABULARY, tokens, tied=tied))


def test_closed_form_and_both_counters_agree_on_a_decoder_of_each_topology(agree: Agree) -> None:
    check_counts("gpt2", EVERY, 128, True, agree)


def test_closed_form_and_both_counters_agree_on_a_decoder_of_each_style(agree: Agree) -> None:
    for style in DECODER_STYLES:
        check_counts(style, ("resnet", "dca"), 4096, False, agree)
    check_counts("llama", ("rmt", "depth-lstm", "svformer"), 4096, False, agree)


@pytest.mark.slow
@pytest.mark.parametrize("style", DECODER_STYLES)
def test_closed_form_and_both_counters_agree_on_every_decoder(style: str, agree: Agree) -> None:
    check_counts(style, EVERY, 128, True, agree)
    check_counts(style, EVERY, 4096, False, agree)


def shape(
    depth: int, width: int, heads: int, hidden: int, topology: str = "resnet", head_dim: int = 64
) -> Architecture:
    return Architecture(depth=depth, width=width, heads=heads, head_dim=head_dim, hidden=hidden, topology=topology)


@pytest.mark.parametrize(
    ("layers", "keys", "values", "rank", "hidden"),
    [(6, 32, 32, 12, 1536), (12, 32, 64, 12, 3072), (18, 48, 64, 14, 3584), (24, 64, 64, 16, 4096)],
)
def test_a_residual_matrix_decoder_has_the_parameters_of_the_paper_and_its_norms(
    layers: int, keys: int, values: int, rank: int, hidden: int
) -> None:
    vocabulary, context, width = 50257, 512, rank * values
    of_the_paper = 2 * vocabulary * width + context * width + 3 * rank * keys
    of_the_paper += layers * (6 * rank * keys + 2 * width * hidden)
    gains = (2 * layers + 1) * keys * values
    architecture = shape(layers, width, rank, hidden, f"rmt(keys={keys})", values)
    assert count_decoder(architecture, "rmt", vocabulary, context).params == of_the_paper + gains
