"""How likely texts are, token by token."""

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


def asked(*arguments: str) -> SimpleNamespace:
    return SimpleNamespace(args=arguments)


@torch.no_grad()
def naive(decoder: nn.Module, before: list[int], after: list[int]) -> tuple[float, bool]:
    """One token after another, each by a pass of its own."""
    total, greedy = 0.0, True
    for number, token in enumerate(after):
        read = [*before, *after[:number]]
        # Of a text that is too long the first tokens are left out, the same for all of what is scored.
        read = read[max(0, len(before) + len(after) - 1 - CONTEXT) :]
        logits: Tensor = decoder(torch.tensor([read]))[0, -1]
        total += logits.log_softmax(-1)[token].item()
        greedy &= int(logits.argmax()) == token
    return total, greedy


def test_a_continuation_is_scored_token_by_token(model: ScoredDecoder, decoder: nn.Module) -> None:
    pairs = [("The module", " os"), ("a", " deprecated function of the library"), ("", "Return"), ("Return the", " x")]
    found = model.loglikelihood([asked(*pair) for pair in pairs])
    for (before, after), (likelihood, greedy) in zip(pairs, found, strict=True):
        first = model.tok_encode(before) if before else [model.eot_token_id]
        whole = model.tok_encode(before + after)
        rest = whole[len(first) :] if before else whole
        expected = naive(decoder, first, rest)
        assert likelihood == pytest.approx(expected[0], rel=1e-5)
        assert greedy == expected[1]


def test_of_a_text_longer_than_the_context_the_end_is_read(model: ScoredDecoder, decoder: nn.Module) -> None:
    before, after = " ".join(["The module returns"] * 10), " a list of names"
    ((likelihood, _),) = model.loglikelihood([asked(before, after)])
    first = model.tok_encode(before)
    rest = model.tok_encode(before + after)[len(first) :]
    assert likelihood == pytest.approx(naive(decoder, first, rest)[0], rel=1e-5)


def test_the_most_likely_continuation_is_greedy(model: ScoredDecoder, decoder: nn.Module) -> None:
    before = model.tok_encode("The module")
    with torch.no_grad():
        likely = int(decoder(torch.tensor([before]))[0, -1].argmax())
    assert [greedy for _, greedy in model.score([(before, [likely]), (before, [likely - 1])])] == [True, False]
    with torch.no_grad():
        second = int(decoder(torch.tensor([[*before, likely]]))[0, -1].argmax())
    found = model.score([(before, [likely, second]), (before, [likely, second - 1]), (before, [likely - 1, second])])
    assert [greedy for _, greedy in found] == [True, False, False]


@torch.no_grad()
def test_every_token_of_a_whole_text_counts_once(model: ScoredDecoder, decoder: nn.Module) -> None:
    text = "Return the names of all modules that were imported by the program, in the order of their names. "
    texts = [2 * text, "A", ""]
    found = model.loglikelihood_rolling([asked(text) for text in texts])
    tokens = model.tok_encode(texts[0])
    assert len(tokens) > 2 * CONTEXT, "in more than two pieces"
    whole, expected = [model.eot_token_id, *tokens], 0.0
    for first in range(0, len(tokens), CONTEXT):  # pieces that share no token but the one before them
        end = min(first + CONTEXT, len(tokens))
        for place in range(first + 1, end + 1):
            read = whole[max(0, end - CONTEXT) : place]  # the last, being shorter, begins sooner
            expected += decoder(torch.tensor([read]))[0, -1].log_softmax(-1)[whole[place]].item()
    assert found[0] == pytest.approx(expected, rel=1e-5)
    assert found[2] == 0
    assert math.exp(found[1]) < 1


def test_refuses_to_generate(model: ScoredDecoder) -> None:
    with raises("unsupported", option="--tasks"):
        model.generate_until([asked("a", "b")])


def test_scoring_switches_dropout_off(task: StdlibLM, decoder: nn.Module) -> None:
    decoder.train()
    ScoredDecoder(decoder, task.splits.tokenizer, CONTEXT, batch=3)
    assert not decoder.training
