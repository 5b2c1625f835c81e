"""Log-likelihoods of texts."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from expect import raises
from tasks.language.stdlib_lm import StdlibLM

pytest.importorskip("lm_eval")
from tasks.language.scoring import ScoredDecoder

CONTEXT = 12


@pytest.fixture(scope="module")
def task() -> StdlibLM:
    return StdlibLM()


@pytest.fixture(scope="module")
def decoder(task: StdlibLM) -> nn.Module:
    torch.manual_seed(0)
    return task.build(task.base.with_fields({"depth": 1, "width": 16, "hidden": 16, "heads": 2, "head_dim": 8})).eval()


@pytest.fixture(scope="module")
def model(task: StdlibLM, decoder: nn.Module) -> ScoredDecoder:
    return ScoredDecoder(decoder, task.splits.tokenizer, CONTEXT, batch=3)


def request(*arguments: str) -> SimpleNamespace:
    return SimpleNamespace(args=arguments)


@torch.no_grad()
def naive(decoder: nn.Module, before: list[int], after: list[int]) -> tuple[float, bool]:
    """Log-likelihoods token by token, with a forward pass each."""
    total, greedy = 0.0, True
    for number, token in enumerate(after):
        read = [*before, *after[:number]]
        # Texts that are too long lose their first tokens, the same number for the whole continuation.
        read = read[max(0, len(before) + len(after) - 1 - CONTEXT) :]
        logits: Tensor = decoder(torch.tensor([read]))[0, -1]
        total += logits.log_softmax(-1)[token].item()
        greedy &= int(logits.argmax()) == token
    return total, greedy


def test_a_continuation_is_scored_token_by_token(model: ScoredDecoder, decoder: nn.Module) -> None:
    pairs = [("The module", " os"), ("a", " deprecated function of the library"), ("", "Return"), ("Return the", " x")]
    scores = model.loglikelihood([request(*pair) for pair in pairs])
    for (before, after), (likelihood, greedy) in zip(pairs, scores, strict=True):
        first = model.tok_encode(before) if before else [model.eot_token_id]
        whole = model.tok_encode(before + after)
        continuation = whole[len(first) :] if before else whole
        expected = naive(decoder, first, continuation)
        assert likelihood == pytest.approx(expected[0], rel=1e-5)
        assert greedy == expected[1]


def test_a_text_longer_than_the_context_keeps_its_end(model: ScoredDecoder, decoder: nn.Module) -> None:
    before, after = " ".join(["The module returns"] * 10), " a list of names"
    ((likelihood, _),) = model.loglikelihood([request(before, after)])
    first = model.tok_encode(before)
    continuation = model.tok_encode(before + after)[len(first) :]
    assert likelihood == pytest.approx(naive(decoder, first, continuation)[0], rel=1e-5)


def test_the_most_likely_continuation_is_greedy(model: ScoredDecoder, decoder: nn.Module) -> None:
    before = model.tok_encode("The module")
    with torch.no_grad():
        likely = int(decoder(torch.tensor([before]))[0, -1].argmax())
    assert [greedy for _, greedy in model.score([(before, [likely]), (before, [likely - 1])])] == [True, False]
    with torch.no_grad():
        second = int(decoder(torch.tensor([[*before, likely]]))[0, -1].argmax())
    scores = model.score([(before, [likely, second]), (before, [likely, second - 1]), (before, [likely - 1, second])])
    assert [greedy for _, greedy in scores] == [True, False, False]


@torch.no_grad()
def test_every_token_of_a_whole_text_counts_once(model: ScoredDecoder, decoder: nn.Module) -> None:
    text = "Return the names of all modules that were imported by the program, in the order of their names. "
    texts = [2 * text, "A", ""]
    scores = model.loglikelihood_rolling([request(text) for text in texts])
    tokens = model.tok_encode(texts[0])
    assert len(tokens) > 2 * CONTEXT, "in more than two pieces"
    whole, expected = [model.eot_token_id, *tokens], 0.0
    for first in range(0, len(tokens), CONTEXT):  # windows that share only the preceding token
        end = min(first + CONTEXT, len(tokens))
        for place in range(first + 1, end + 1):
            read = whole[max(0, end - CONTEXT) : place]  # the last window is shorter and has more context
            expected += decoder(torch.tensor([read]))[0, -1].log_softmax(-1)[whole[place]].item()
    assert scores[0] == pytest.approx(expected, rel=1e-5)
    assert scores[2] == 0
    assert math.exp(scores[1]) < 1


def test_refuses_to_generate(model: ScoredDecoder) -> None:
    with raises("unsupported", option="--tasks"):
        model.generate_until([request("a", "b")])


def test_scoring_switches_dropout_off(task: StdlibLM, decoder: nn.Module) -> None:
    decoder.train()
    ScoredDecoder(decoder, task.splits.tokenizer, CONTEXT, batch=3)
    assert not decoder.training
