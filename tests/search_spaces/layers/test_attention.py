"""Softmax attention against its formula."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from grouped import grouped
from search_spaces.layers.attention import SoftmaxAttention


def naive(q: Tensor, k: Tensor, v: Tensor, temperature: float, causal: bool) -> Tensor:
    logits = torch.einsum("bhnk,bhmk->bhnm", q, k) / temperature / math.sqrt(q.shape[-1])
    later = torch.ones(q.shape[2], k.shape[2]).triu(1).bool()
    return torch.softmax(logits.masked_fill(later, -math.inf) if causal else logits, dim=-1) @ v


def test_softmax_attention_equals_its_formula() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 7, 4).unbind()
    with grouped() as case:
        for temperature, causal in product((1.0, 3.0), (True, False)):
            with case(f"temperature {temperature}, causal {causal}"):
                actual = SoftmaxAttention(causal=causal, temperature=temperature)(q, k, v)
                torch.testing.assert_close(actual, naive(q, k, v, temperature, causal))


def test_attention_logits_stay_in_fp32_when_inputs_are_bf16() -> None:
    torch.manual_seed(0)
    q, k, v = (scale * torch.randn(1, 2, 32, 16).bfloat16() for scale in (16, 16, 1))
    expected = naive(q.float(), k.float(), v.float(), 3, True)
    logits = (q.float() @ k.float().mT / math.sqrt(16) / 3).bfloat16().float()
    later = torch.ones(32, 32).triu(1).bool()
    reference = torch.softmax(logits.masked_fill(later, -math.inf), dim=-1) @ v.float()
    actual = SoftmaxAttention(causal=True, temperature=3)(q, k, v).float()
    assert (actual - expected).abs().max() < 0.02
    assert (reference - expected).abs().max() > 0.04  # what bf16 logits would give


@pytest.mark.parametrize("causal", [True, False])
def test_masked_keys_change_nothing_for_the_others(causal: bool) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 7, 4).unbind()
    attend = SoftmaxAttention(causal=causal)
    masked = attend(q, k, v, torch.arange(7).expand(2, -1) < 5)
    torch.testing.assert_close(masked[:, :, :5], attend(q[:, :, :5], k[:, :, :5], v[:, :, :5]))
    assert not torch.allclose(attend(q, k, v)[:, :, :5], masked[:, :, :5]) or causal


def test_a_mask_does_not_let_causal_attention_look_ahead() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 7, 4).unbind()
    attend = SoftmaxAttention(causal=True)
    torch.testing.assert_close(attend(q, k, v, torch.ones(2, 7, dtype=torch.bool)), attend(q, k, v))
