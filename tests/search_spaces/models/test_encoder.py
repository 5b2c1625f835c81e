"""The encoder: counts three ways, gradients and padding."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from expect import raises, warns
from grouped import grouped
from nas.costs.count import meta_device
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.nystrom import Nystrom
from search_spaces.models.encoder import Encoder, EncoderSizes, build_encoder, count_encoder
from search_spaces.support.count import Count
from search_spaces.support.errors import Notice
from search_spaces.topologies.registry import TOPOLOGIES
from tests.search_spaces.models.forms import FORMS

Agree = Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]

ARCHITECTURE = Architecture(depth=2, width=24, heads=5, head_dim=8, hidden=20)
SIZES = EncoderSizes(vocabulary=32, context=32, classes=10, hidden=16)
ATTENTION = {
    "softmax": None,
    "nystrom": Nystrom(8),
    "nystrom with a skip": Nystrom(8, kernel=5),
    "nystrom, padded": Nystrom(6, kernel=3, scaling="batch"),
}

CASES = [
    *((attention, "resnet") for attention in ATTENTION),
    *(("nystrom with a skip", topology) for topology in TOPOLOGIES.names() if topology != "resnet"),
    ("softmax", "rezero(norms=false)"),
]


def encoder(sizes: EncoderSizes, topology: str = "resnet") -> Encoder:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build_encoder(replace(ARCHITECTURE, topology=topology), sizes).double()


def texts(real: int, tokens: int = 32) -> Tensor:
    """Three texts with `real` tokens before the padding."""
    torch.manual_seed(1)
    ids = torch.randint(1, 32, (3, tokens))
    ids[:, real:] = 0
    return ids


def check_counts(attention: str, topology: str, texts_each: int, tokens: int, agree: Agree, depth: int = 2) -> None:
    """Assert that counters and closed form agree on an encoder."""
    architecture = replace(ARCHITECTURE, topology=topology, depth=depth)
    sizes = replace(SIZES, context=tokens, texts=texts_each, attention=ATTENTION[attention], dropout=0.1)
    with meta_device(), warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)  # tokens are no multiple of the landmarks
        model = build_encoder(architecture, sizes)
        example = torch.zeros((1, tokens) if texts_each == 1 else (1, 2, tokens), dtype=torch.long)
    agree(model, (example,), count_encoder(architecture, sizes, tokens))


LENGTHS = [(1, 4096), (2, 128), (1, 32)]
"""Texts per example, and tokens per text."""


def test_closed_form_and_both_counters_agree_on_an_encoder(agree: Agree) -> None:
    with grouped() as case:
        for attention, (texts_each, tokens) in product(ATTENTION, LENGTHS):
            with case(f"{attention}, {texts_each} texts of {tokens} tokens"):
                check_counts(attention, "resnet", texts_each, tokens, agree, depth=1)
        for topology in FORMS:
            with case(topology):
                check_counts("softmax", topology, 1, 128, agree)


@pytest.mark.slow
def test_closed_form_and_both_counters_agree_on_every_encoder(agree: Agree) -> None:
    with grouped() as case:
        for (attention, topology), (texts_each, tokens) in product(CASES, LENGTHS):
            with case(f"{topology} with {attention}, {texts_each} texts of {tokens} tokens"):
                check_counts(attention, topology, texts_each, tokens, agree)


# "Leaner Transformers", table 6: ListOps with Nyströmformer's published configuration.
@pytest.mark.parametrize(("depth", "heads", "thousands"), [(2, 2, "209.8"), (1, 4, "192.9")])
def test_listops_encoders_have_the_printed_number_of_parameters(depth: int, heads: int, thousands: str) -> None:
    architecture = Architecture(depth=depth, width=64, heads=heads, head_dim=32, hidden=128)
    sizes = EncoderSizes(vocabulary=32, context=2048, classes=10, attention=Nystrom(64))
    assert f"{count_encoder(architecture, sizes, 2048).params / 1e3:.1f}" == thousands


def test_every_matrix_of_an_encoder_has_a_gradient() -> None:
    with grouped() as case:
        for attention, topology in CASES:
            with case(f"{topology} with {attention}"):
                model = encoder(replace(SIZES, attention=ATTENTION[attention], dropout=0.1), topology)
                with torch.no_grad():  # leave special starts such as dead keys and uniform sums
                    for parameter in model.parameters():
                        parameter.add_(0.1 * torch.randn_like(parameter))
                model(texts(30)).square().sum().backward()
                matrices = {name: p.grad for name, p in model.named_parameters() if p.ndim > 1}
                assert [name for name, grad in matrices.items() if grad is None or not grad.any()] == []


def test_padding_behind_a_text_does_not_change_its_scores() -> None:
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                model, ids = encoder(SIZES, topology).eval(), texts(21)
                torch.testing.assert_close(model(ids), model(ids[:, :21]))


@pytest.mark.parametrize("attention", ATTENTION)
def test_the_embedding_of_padding_changes_nothing(attention: str) -> None:
    model = encoder(replace(SIZES, attention=ATTENTION[attention])).eval()
    ids = texts(21)
    expected = model(ids)
    with torch.no_grad():
        model.embedding.tokens.weight[0] = 100.0
    torch.testing.assert_close(model(ids), expected)


@pytest.mark.parametrize("attention", ATTENTION)
def test_a_text_of_padding_alone_has_finite_scores_and_gradients(attention: str) -> None:
    model, ids = encoder(replace(SIZES, attention=ATTENTION[attention])), texts(21)
    ids[0] = 0
    scores = model(ids)
    scores.sum().backward()
    assert scores.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_attention_through_enough_landmarks_is_exact() -> None:
    ids, exact = texts(21), encoder(SIZES)
    nystrom = encoder(replace(SIZES, attention=Nystrom(32)))
    nystrom.load_state_dict(exact.state_dict())
    torch.testing.assert_close(nystrom(ids), exact(ids))


def test_one_tower_reads_both_texts_of_an_example() -> None:
    model = encoder(replace(SIZES, texts=2)).eval()
    first, second = texts(21), texts(30).flip(0)
    records: list[Tensor] = []
    model.head[0].register_forward_hook(lambda module, inputs, output: records.append(output))
    model(torch.stack((first, second), dim=1))
    a, b = (mean_features(model, ids) for ids in (first, second))
    torch.testing.assert_close(records[0], torch.cat((a, b, a * b, a - b), dim=-1))


def mean_features(model: Encoder, ids: Tensor) -> Tensor:
    """The mean of each text's features, without padding."""
    means = []
    for text in ids:
        tokens = text[text != 0][None]
        means.append(model.stack(*model.embedding(tokens))[0].mean(0))
    return torch.stack(means)


def test_dropout_drops_features_of_the_sum_of_embeddings_in_training_alone() -> None:
    model = encoder(replace(SIZES, dropout=0.5))
    records: list[tuple[Tensor, ...]] = []
    model.stack.register_forward_pre_hook(lambda module, parts: records.append(parts))
    model.train()(texts(32))
    model.eval()(texts(32))
    words, positions = records[0]
    assert torch.equal(words == 0, (words + positions) == 0)
    assert 0.4 < (words == 0).double().mean() < 0.6
    assert (records[1][0] != 0).all()


def test_recomputed_layers_get_the_padding() -> None:
    model, ids = encoder(SIZES), texts(21)
    expected = model(ids)
    model.stack.recompute = True
    torch.testing.assert_close(model(ids), expected)


def test_more_tokens_than_positions_are_refused() -> None:
    with raises("too-large", option="tokens", value=33, most=32):
        encoder(SIZES)(texts(20, 33))


def test_more_than_two_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="got 3"):
        replace(SIZES, texts=3)


def test_landmarks_that_do_not_divide_the_context_give_one_notice() -> None:
    sizes = replace(SIZES, context=29, attention=Nystrom(7))
    with warns("skipped", option="landmarks", value=7, context=29, padding=6):
        build_encoder(ARCHITECTURE, sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_encoder(ARCHITECTURE, sizes)


@pytest.mark.parametrize(
    "topology", ["dca", pytest.param("resnet", marks=pytest.mark.slow), pytest.param("rmt", marks=pytest.mark.slow)]
)
def test_an_encoder_compiles_to_the_same_scores(topology: str) -> None:
    model, ids = encoder(replace(SIZES, attention=Nystrom(8, kernel=3)), topology).eval(), texts(21)
    expected = model(ids)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="eager")(ids), expected)


def test_pooling_over_positions_divides_by_the_padded_length() -> None:
    sizes = EncoderSizes(vocabulary=9, context=12, classes=3)
    shape = Architecture(depth=1, width=8, heads=2, head_dim=4, hidden=16)
    of_tokens, of_positions = (
        build_encoder(shape, replace(sizes, pooling=pooling)).eval() for pooling in ("tokens", "positions")
    )
    of_positions.load_state_dict(of_tokens.state_dict())
    records: list[Tensor] = []
    for model in (of_tokens, of_positions):
        model.head.register_forward_pre_hook(lambda _, inputs: records.append(inputs[0]))
        model(torch.tensor([[3, 4, 5, 0, 0, 0]]))
    assert torch.allclose(records[1], records[0] * 3 / 6)
