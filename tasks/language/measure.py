"""Metrics of decoders: nats per token, perplexity, and bits per byte, which does not depend on the tokenizer.

Shapes: B = rows, N = context, V = vocabulary.
"""

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from tasks.base import Metric
from tasks.language.row_layouts import IGNORE_INDEX

METRICS = (
    Metric("loss", "nats per token", "min"),
    Metric("perplexity", "tokens", "min"),
    Metric("bits_per_byte", "bits per byte", "min"),
)


def sums_from_logits(logits: Tensor, answers: Tensor) -> Mapping[str, Tensor]:
    """Return nats, tokens, bytes of text and document of each row; each [B].

    `logits` is [B, N, V]; `answers` [B, N, 3] has for each position the next token, its bytes and its document.
    """
    targets = answers[..., 0]
    flat = F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE_INDEX, reduction="none"
    )  # [B * N]
    return sums_from_nats(flat.view_as(targets), answers)


def sums_from_nats(nats: Tensor, answers: Tensor) -> Mapping[str, Tensor]:
    """Return the same from the nats of each token, [B, N]."""
    targets, sizes, documents = answers.unbind(-1)
    is_target = targets != IGNORE_INDEX
    return {
        "nats": (nats * is_target).sum(dim=1),
        "tokens": is_target.sum(dim=1),
        "bytes": (sizes * is_target).sum(dim=1),
        "document": documents[:, 0],
    }


def summary(sums: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the metrics of all rows together, and standard errors over documents if there are several."""
    nats, tokens, size = sum_by_document(sums, "nats", "tokens", "bytes")
    loss, loss_se = ratio(nats, tokens)
    bits, bits_se = ratio(nats / math.log(2), size)
    perplexity = math.exp(min(loss, 700.0))  # larger exponents overflow
    metrics = {"loss": loss, "perplexity": perplexity, "bits_per_byte": bits}
    if len(nats) > 1:
        metrics |= {"loss_se": loss_se, "perplexity_se": perplexity * loss_se, "bits_per_byte_se": bits_se}
    return metrics


def sum_by_document(sums: Mapping[str, Tensor], *names: str) -> list[Tensor]:
    """Sum row values over each document, [documents] each."""
    numbers, rows = sums["document"].unique(return_inverse=True)
    empty = torch.zeros(len(numbers), dtype=torch.float64)
    return [empty.index_add(0, rows, sums[name].double()) for name in names]


def ratio(numerator: Tensor, denominator: Tensor) -> tuple[float, float]:
    """Return a ratio of sums over documents, r = sum(a) / sum(b), and its standard error.

    The error is sqrt(n / (n - 1) * sum((a - r b)^2)) / sum(b) (Cochran, Sampling Techniques, 1977, chapter 6).
    """
    quotient = numerator.sum() / denominator.sum()
    residuals, n = numerator - quotient * denominator, len(numerator)
    error = (residuals.square().sum() * n / max(1, n - 1)).sqrt() / denominator.sum()
    return quotient.item(), error.item()
