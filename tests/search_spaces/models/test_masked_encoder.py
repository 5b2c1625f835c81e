"""The masked encoder: equations, counts three ways and padding."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from expect import raises
from grouped import grouped
from nas.costs.count import meta_device
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.masked_encoder import MaskedEncoder, build_masked, count_masked
from search_spaces.support.count import Count
from search_spaces.topologies.registry import TOPOLOGIES
from tests.search_spaces.models.forms import FORMS

Agree = Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]

ARCHITECTURE = Architecture(depth=2, width=24, heads=3, head_dim=8, hidden=20)


def encoder(topology: str = "resnet", style: str = "crammed-bert") -> MaskedEncoder:
    torch.manual_seed(0)
    return build_masked(replace(ARCHITECTURE, topology=topology), style, 50, 16).double()


def texts() -> Tensor:
    return torch.randint(50, (3, 16), generator=torch.Generator().manual_seed(1))


def check_counts(topologies: Iterable[str], style: str, agree: Agree) -> None:
    """Assert that counters and closed form agree on masked encoders with these topologies."""
    with grouped() as case:
        for topology in topologies:
            with case(f"{topology} in {style}"):
                architecture = replace(ARCHITECTURE, topology=topology)
                with meta_device():
                    model = build_masked(architecture, style, 50, 16)
                    example = torch.zeros(1, 16, dtype=torch.long)
                agree(model, (example,), count_masked(architecture, style, 50, 16))


def test_closed_form_and_both_counters_agree_on_a_masked_encoder(agree: Agree) -> None:
    check_counts(FORMS, "crammed-bert", agree)
    check_counts(["resnet"], "crammed-bert-rotary", agree)


@pytest.mark.slow
def test_closed_form_and_both_counters_agree_on_every_masked_encoder(agree: Agree) -> None:
    check_counts([*TOPOLOGIES.names(), "rezero(norms=false)"], "crammed-bert", agree)


def test_crammed_bert_has_the_parameters_of_the_paper() -> None:
    """Leaner Transformers, table 2: 119M, rounded down."""
    whole = Architecture(depth=16, width=768, heads=12, head_dim=64, hidden=1536)
    assert count_masked(whole, "crammed-bert", 32_768, 128).params == 119_589_889
    leaner = replace(whole, depth=10, heads=24, head_dim=32)
    assert count_masked(leaner, "crammed-bert", 32_768, 128).params == 84_182_017


def normalize(x: list[float], norm: nn.LayerNorm) -> list[float]:
    mean = sum(x) / len(x)
    spread = math.sqrt(sum((value - mean) ** 2 for value in x) / len(x) + 1e-12)
    scales = zip(norm.weight.tolist(), norm.bias.tolist(), strict=True)
    return [scale * (value - mean) / spread + shift for value, (scale, shift) in zip(x, scales, strict=True)]


def multiply(x: list[float], weight: Tensor) -> list[float]:
    return [sum(a * b for a, b in zip(row, x, strict=True)) for row in weight.tolist()]


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def naive(model: MaskedEncoder, ids: list[int]) -> list[list[float]]:
    """Geiping and Goldstein's encoder, number by number."""
    width, heads, length = 24, 3, 8
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    stream = []
    for place, token in enumerate(ids):
        waves = [
            (math.sin, math.cos)[feature % 2](place / 10_000 ** (feature // 2 * 2 / width)) for feature in range(width)
        ]
        word = weights["embedding.tokens.weight"][token].tolist()
        scale = weights["embedding.scale"].item()
        stream.append(normalize([a + scale * b for a, b in zip(word, waves, strict=True)], model.embedding.norm))
    for attention, feed_forward in zip(model.stack.layers[::2], model.stack.layers[1::2], strict=True):
        inputs = [normalize(x, attention.project.norm) for x in stream]
        projections = [multiply(x, attention.project.qkv.weight) for x in inputs]
        contexts: list[list[float]] = [[] for _ in ids]
        for head in range(heads):
            parts = [
                slice(part * heads * length + head * length, part * heads * length + (head + 1) * length)
                for part in range(3)
            ]
            q, k, v = ([projection[part] for projection in projections] for part in parts)
            for place in range(len(ids)):
                scores = [
                    math.exp(sum(a * b for a, b in zip(q[place], key, strict=True)) / math.sqrt(length)) for key in k
                ]
                for feature in range(length):
                    contexts[place].append(
                        sum(s * value[feature] for s, value in zip(scores, v, strict=True)) / sum(scores)
                    )
        stream = [
            [a + b for a, b in zip(x, multiply(y, attention.out.weight), strict=True)]
            for x, y in zip(stream, contexts, strict=True)
        ]
        updates = []
        for x in stream:
            up = multiply(normalize(x, feed_forward.norm), feed_forward.up.weight)
            hidden = [value * gelu(gate) for value, gate in zip(up[:20], up[20:], strict=True)]
            updates.append(multiply(hidden, feed_forward.down.weight))
        stream = [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(stream, updates, strict=True)]
    return [multiply(normalize(x, model.stack.norm), weights["embedding.tokens.weight"]) for x in stream]


@torch.no_grad()
def test_the_resnet_encoder_equals_its_equations() -> None:
    model, ids = encoder(), texts()[:1, :5]
    for parameter in model.parameters():  # norms start at 1 and 0
        parameter.add_(0.1 * torch.randn_like(parameter))
    torch.testing.assert_close(model(ids)[0], torch.tensor(naive(model, ids[0].tolist()), dtype=torch.double))


def test_words_are_scored_by_their_own_embeddings_and_waves_start_small() -> None:
    model = encoder()
    assert model.head.weight is model.embedding.tokens.weight
    assert model.embedding.scale.item() == pytest.approx(24**-0.5)
    assert model.embedding.tokens.weight.std().item() == pytest.approx(0.02, rel=0.1)


def test_a_topology_may_initialize_layers_differently() -> None:
    plain, deepnorm = (encoder(topology).stack.layers[0].out.weight.std().item() for topology in ("resnet", "deepnorm"))
    assert deepnorm < 0.9 * plain


def test_padding_behind_a_text_changes_nothing_in_it() -> None:
    real = torch.arange(16).expand(3, -1) < 11
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                model, ids = encoder(topology).eval(), texts()
                torch.testing.assert_close(model(ids, real)[:, :11], model(ids[:, :11]))


def test_every_token_sees_later_ones() -> None:
    ids = texts()
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 1) % 50
    with grouped() as case, torch.no_grad():
        for topology in TOPOLOGIES.names():
            with case(topology):
                model = encoder(topology)
                for parameter in model.parameters():
                    parameter.add_(0.1 * torch.randn_like(parameter))
                assert (model(ids)[:, 0] != model(other)[:, 0]).any()


def test_more_tokens_than_positions_are_refused() -> None:
    with raises("too-large", option="tokens", value=17, most=16):
        encoder()(torch.zeros(1, 17, dtype=torch.long))


def test_rotary_positions_depend_on_distances_alone() -> None:
    model = encoder(style="crammed-bert-rotary").eval()
    ids = torch.tensor([[3, 4, 5, 6]])
    (embedded,) = model.embedding(torch.tensor([[3, 3]]))
    assert torch.equal(embedded[0, 0], embedded[0, 1])
    alone = model(ids)
    behind = torch.cat((torch.zeros(1, 5, dtype=torch.long), ids), dim=1)
    later = model(behind, torch.arange(9)[None] >= 5)[:, 5:]
    torch.testing.assert_close(alone, later)
    assert not torch.allclose(alone[:, 0], model(ids.flip(1))[:, 3])


def test_an_unknown_style_is_refused() -> None:
    with raises("unknown-name", option="style", value="cramed-bert", nearest="crammed-bert"):
        build_masked(ARCHITECTURE, "cramed-bert", 50, 16)
