"""Attention with distance biases, one query at a time."""

import math

import pytest
import torch

from search_spaces.layers.distance import DistanceAttention, DistanceBias


@pytest.mark.parametrize("masked", [False, True])
def test_attention_over_distances_equals_its_formula(masked: bool) -> None:
    heads, tokens, length, temperature = 3, 6, 4, 2.0
    q, k, v = torch.randn(3, 2, heads, tokens, length)
    mask = torch.ones(2, tokens, dtype=torch.bool)
    if masked:
        mask[1, 2:4] = False
    attend = DistanceAttention(DistanceBias(heads, 2 * tokens), temperature=temperature)
    out = attend(q, k, v, mask if masked else None)
    slopes = [2 ** (-8 / 3), 2 ** (-16 / 3), 2**-8]
    for b in range(2):
        for h in range(heads):
            for i in range(tokens):
                past = [j for j in range(i + 1) if mask[b, j]]
                logits = [
                    float(q[b, h, i] @ k[b, h, j]) / math.sqrt(length) / temperature - slopes[h] * (i - j) for j in past
                ]
                shares = torch.tensor(logits).softmax(0)
                expected = sum(share * v[b, h, j] for share, j in zip(shares, past, strict=True))
                torch.testing.assert_close(out[b, h, i], expected, atol=1e-5, rtol=0)


def test_slopes_are_evenly_spaced_in_their_logarithm() -> None:
    for heads in (1, 2, 12):
        slopes = DistanceBias(heads, 2).penalty[:, 1, 0]
        torch.testing.assert_close(slopes, torch.logspace(-8 / heads, -8, heads, base=2))


def test_the_bias_is_not_saved() -> None:
    assert not DistanceBias(2, 4).state_dict()
