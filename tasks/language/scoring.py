"""A decoder as a model of lm-eval, for log-likelihoods. Requires lm-eval.

Shapes: B = texts, N = tokens, V = vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import torch
from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from search_spaces.support.errors import UserError
from search_spaces.support.progress import Progress
from tasks.language.tokenizer import Tokenizer

Score = tuple[float, bool]
"""Log-probability of a text, and whether greedy decoding would produce it."""


class ScoredDecoder(TemplateLM):  # type: ignore[misc]  # lm-eval is untyped
    """A decoder and its tokenizer. A text without context follows an end-of-document token.

    Args:
        network: Causal map of tokens [B, N] to logits [B, N, V].
        tokenizer: Its tokenizer.
        context: Maximum number of input tokens; longer texts are truncated on the left.
        batch: Texts per forward pass.
    """

    def __init__(self, network: nn.Module, tokenizer: Tokenizer, context: int, batch: int) -> None:
        super().__init__()
        self._network, self._tokenizer, self._context, self._batch = network.eval(), tokenizer, context, batch

    @property
    def eot_token_id(self) -> int:
        return self._tokenizer.boundary

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        """Return a text's tokens, without special tokens."""
        return [int(token) for token in self._tokenizer.encode([string])[0]]

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = True) -> list[Score]:
        """Return the scores of continuations."""
        scores: list[Score] = super().loglikelihood(requests, disable_tqdm=True)
        return scores

    def _loglikelihood_tokens(self, requests: Sequence[tuple[Any, list[int], list[int]]], **_: Any) -> list[Score]:
        return self.score([(before, after) for _, before, after in requests])

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """Return the log-likelihoods of whole texts: each token once, with as much context as fits."""
        windows = [
            (number, *make_disjoint_window(pair))
            for number, request in enumerate(requests)
            for pair in get_rolling_token_windows(
                self.tok_encode(request.args[0]), self.prefix_token_id, self._context, 1
            )
        ]
        totals = [0.0] * len(requests)
        scores = self.score([(before, after) for _, before, after in windows])
        for (number, _, _), (likelihood, _) in zip(windows, scores, strict=True):
            totals[number] += likelihood
        return totals

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """Raise UserError: generation is not supported."""
        raise UserError(
            "unsupported",
            "tasks must be scored by likelihood, got one that generates text. Remove it from --tasks.",
            option="--tasks",
        )

    @torch.no_grad()
    def score(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[Score]:
        """Return the score of each continuation, [(context, continuation)]; texts of similar length share a batch."""
        longest_first = sorted(range(len(pairs)), key=lambda number: -len(pairs[number][0]) - len(pairs[number][1]))
        scores: dict[int, Score] = {}
        with Progress("texts scored", len(pairs)) as progress:
            for first in range(0, len(pairs), self._batch):
                batch = longest_first[first : first + self._batch]
                scores |= dict(zip(batch, self._score_batch([pairs[number] for number in batch]), strict=True))
                progress.set_done(len(scores))
        return [scores[number] for number in range(len(pairs))]

    def _score_batch(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[Score]:
        texts = [torch.tensor([*before, *after][-self._context - 1 :]) for before, after in pairs]
        device = next(self._network.parameters()).device
        read = pad_sequence([text[:-1] for text in texts], batch_first=True)  # right padding, and the network is causal
        logits: Tensor = self._network(read.to(device))
        return [
            _score_end(row[: len(text) - 1], text[1:].to(device), len(after))
            for row, text, (_, after) in zip(logits.float(), texts, pairs, strict=True)
        ]


def _score_end(logits: Tensor, following: Tensor, tokens: int) -> Score:
    """Score the last `tokens` tokens: logits [N, V] and the actual next tokens [N]."""
    logits, targets = logits[-tokens:], following[-tokens:]
    nats = logits.log_softmax(dim=-1).gather(1, targets[:, None]).double()
    return nats.sum().item(), bool((logits.argmax(dim=-1) == targets).all())
