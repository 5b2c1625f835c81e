"""What decoders cost: the closed form against the model, two counters and what papers print."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from nas.cost import count_macs
from search_spaces.architecture import Architecture
from search_spaces.count import Count
from search_spaces.models.decoder import DIALECTS, build_decoder, count_decoder
from search_spaces.topologies.registry import TOPOLOGIES

VOCABULARY, CONTEXT = 97, 16


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("topology", TOPOLOGIES.names())
@pytest.mark.parametrize("dialect", DIALECTS)
def test_closed_form_model_and_both_counters_agree(dialect: str, topology: str, tied: bool) -> None:
    architecture = Architecture(depth=2, width=24, heads=5, head_dim=8, hidden=20, topology=topology)
    with torch.device("meta"):
        model = build_decoder(architecture, dialect, VOCABULARY, CONTEXT, tied=tied)
        example = torch.zeros(1, CONTEXT, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        model(example)
    params, macs = sum(parameter.numel() for parameter in model.parameters()), counter.get_total_flops() / 2
    assert count_decoder(architecture, dialect, VOCABULARY, CONTEXT, tied=tied) == Count(params, int(macs))
    assert count_macs(model, (example,))[0] == macs


def shape(
    depth: int, width: int, heads: int, hidden: int, topology: str = "resnet", head_dim: int = 64
) -> Architecture:
    return Architecture(depth=depth, width=width, heads=heads, head_dim=head_dim, hidden=hidden, topology=topology)


# What is printed, in millions, of the shapes that the papers or the code that they name state.
PRINTED = [
    # ANCRe, LLaMA on C4: GaLore's configurations; counts by transformers' own model of them.
    ("llama", shape(8, 512, 8, 1376), 32000, 256, "58.07"),
    ("llama", shape(12, 768, 12, 2048), 32000, 256, "134.11"),
    ("llama", shape(24, 1024, 16, 2736), 32000, 256, "367.97"),
    ("llama", shape(24, 2048, 32, 5461), 32000, 256, "1339.08"),
    # DeepCrossAttention, table 6: flax's lm1b example.
    ("lm1b", shape(6, 512, 8, 2048), 30000, 128, "49.65"),
    # Residual matrix transformers, table 9. Two rows print the width of the matched transformer as D_k.
    ("rmt", shape(6, 384, 12, 1536, "rmt(keys=32)", 32), 50257, 512, "46"),
    ("rmt", shape(12, 768, 12, 3072, "rmt(keys=32)"), 50257, 512, "134"),
    ("rmt", shape(18, 896, 14, 3584, "rmt(keys=48)"), 50257, 512, "206"),
    ("rmt", shape(24, 1024, 16, 4096, "rmt(keys=64)"), 50257, 512, "305"),
    ("rmt", shape(6, 384, 12, 1536, "resnet", 32), 50257, 512, "49"),
    ("rmt", shape(24, 1024, 16, 4096), 50257, 512, "405"),
]


@pytest.mark.parametrize(("dialect", "architecture", "vocabulary", "context", "printed"), PRINTED, ids=str)
def test_published_shapes_have_the_printed_number_of_parameters(
    dialect: str, architecture: Architecture, vocabulary: int, context: int, printed: str
) -> None:
    digits = len(printed.partition(".")[2])
    params = count_decoder(architecture, dialect, vocabulary, context).params
    assert f"{params / 1e6:.{digits}f}" == printed


@pytest.mark.parametrize(
    ("layers", "keys", "values", "rank", "hidden"),
    [(6, 32, 32, 12, 1536), (12, 32, 64, 12, 3072), (18, 48, 64, 14, 3584), (24, 64, 64, 16, 4096)],
)
def test_a_residual_matrix_decoder_has_the_papers_parameters_and_the_gains_of_its_norms(
    layers: int, keys: int, values: int, rank: int, hidden: int
) -> None:
    vocabulary, context, width = 50257, 512, rank * values
    of_the_paper = 2 * vocabulary * width + context * width + 3 * rank * keys
    of_the_paper += layers * (6 * rank * keys + 2 * width * hidden)
    gains = (2 * layers + 1) * keys * values
    architecture = shape(layers, width, rank, hidden, f"rmt(keys={keys})", values)
    assert count_decoder(architecture, "rmt", vocabulary, context).params == of_the_paper + gains
