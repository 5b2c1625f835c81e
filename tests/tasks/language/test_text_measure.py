import math

import pytest
import torch

from tasks.language.measure import summary, sums_from_logits
from tasks.language.row_layouts import IGNORE_INDEX

B, N, V = 5, 7, 11
DOCUMENTS = [0, 0, 1, 2, 2]


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    targets = torch.randint(V, (B, N), generator=draw)
    targets[0, 5:] = targets[3, 2:] = IGNORE_INDEX
    sizes = torch.randint(6, (B, N), generator=draw)
    documents = torch.tensor(DOCUMENTS)[:, None].expand(B, N)
    return torch.randn(B, N, V, generator=draw), torch.stack((targets, sizes, documents), dim=-1)


def by_hand(logits: torch.Tensor, answers: torch.Tensor) -> list[tuple[float, int, int]]:
    """Nats, tokens and bytes of each document, token by token."""
    sums = [[0.0, 0, 0] for _ in set(DOCUMENTS)]
    for row in range(B):
        for n in range(N):
            target, size, document = answers[row, n].tolist()
            if target != IGNORE_INDEX:
                chance = math.exp(logits[row, n, target]) / sum(math.exp(score) for score in logits[row, n])
                sums[document][0] -= math.log(chance)
                sums[document][1] += 1
                sums[document][2] += size
    return [tuple(each) for each in sums]  # type: ignore[misc]


def test_loss_perplexity_and_bits_per_byte_match_a_sum_by_hand(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    documents = by_hand(*batch)
    nats, tokens, size = (sum(each) for each in zip(*documents, strict=True))
    metrics = summary(sums_from_logits(*batch))
    assert metrics["loss"] == pytest.approx(nats / tokens, rel=1e-5)
    assert metrics["perplexity"] == pytest.approx(math.exp(nats / tokens), rel=1e-5)
    assert metrics["bits_per_byte"] == pytest.approx(nats / math.log(2) / size, rel=1e-5)


def test_standard_errors_match_the_formula_over_documents(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    documents = by_hand(*batch)
    nats, tokens, _ = (sum(each) for each in zip(*documents, strict=True))
    n, loss = len(documents), nats / tokens
    squares = sum((a - loss * b) ** 2 for a, b, _ in documents)
    expected = math.sqrt(n / (n - 1) * squares) / tokens
    metrics = summary(sums_from_logits(*batch))
    assert metrics["loss_se"] == pytest.approx(expected, rel=1e-4)
    assert metrics["perplexity_se"] == pytest.approx(expected * metrics["perplexity"], rel=1e-4)


def test_standard_errors_cover_the_truth_at_the_nominal_rate() -> None:
    draw = torch.Generator().manual_seed(1)
    inside = 0
    for _ in range(400):
        tokens = torch.randint(50, 150, (60,), generator=draw)
        nats = tokens * (3 + 0.5 * torch.randn(60, generator=draw))
        metrics = summary({"nats": nats, "tokens": tokens, "bytes": 3 * tokens, "document": torch.arange(60)})
        inside += abs(metrics["loss"] - 3) < 1.96 * metrics["loss_se"]
    assert 0.90 < inside / 400 < 0.98


def test_one_document_has_no_standard_error(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    logits, answers = batch
    metrics = summary(sums_from_logits(logits[:2], answers[:2]))
    assert set(metrics) == {"loss", "perplexity", "bits_per_byte"}


def test_bits_per_byte_does_not_depend_on_the_tokenizer() -> None:
    # Uniform models of bytes and of byte pairs have log 256 nats per byte.
    single = {"nats": math.log(256) * torch.ones(10), "tokens": torch.ones(10), "bytes": torch.ones(10)}
    pairs = {"nats": math.log(256**2) * torch.ones(5), "tokens": torch.ones(5), "bytes": 2 * torch.ones(5)}
    metrics = [summary({**each, "document": torch.arange(len(each["nats"]))}) for each in (single, pairs)]
    assert metrics[0]["bits_per_byte"] == pytest.approx(8)
    assert metrics[1]["bits_per_byte"] == pytest.approx(8)
    assert metrics[0]["loss"] != pytest.approx(metrics[1]["loss"])
