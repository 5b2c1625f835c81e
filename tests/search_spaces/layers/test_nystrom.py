"""Nyström attention against its definition head by head, and against exact attention."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from expect import raises
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.nystrom import Nystrom, pseudo_inverse


def naive(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, landmarks: int, scaling: str) -> Tensor:
    """The published code, one head at a time."""
    batch, heads, tokens, size = q.shape
    masked = mask[:, None, :, None]
    q, k = q * masked / size**0.25, k * masked / size**0.25
    means = [x.reshape(batch, heads, landmarks, tokens // landmarks, size).mean(3) for x in (q, k)]
    near = torch.softmax(torch.einsum("bhik,bhjk->bhij", *means), dim=-1)
    out = torch.empty_like(v)
    for b in range(batch):
        for h in range(heads):
            a = near[b, h]
            z = a.T / (near if scaling == "batch" else a).sum(-2).max()
            for _ in range(6):
                inner = 7 * torch.eye(landmarks).to(a) - a @ z
                inner = 15 * torch.eye(landmarks).to(a) - a @ z @ inner
                z = 0.25 * z @ (13 * torch.eye(landmarks).to(a) - a @ z @ inner)
            far = torch.softmax(q[b, h] @ means[1][b, h].T, dim=-1)
            gather = torch.softmax(means[0][b, h] @ k[b, h].T - 1e9 * (1 - mask[b].to(a)), dim=-1)
            out[b, h] = far @ z @ gather @ v[b, h]
    return out


def inputs(batch: int = 2, heads: int = 3, tokens: int = 24, size: int = 4) -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    return torch.randn(3, batch, heads, tokens, size).double().unbind()


@pytest.mark.parametrize("scaling", ["matrix", "batch"])
@pytest.mark.parametrize("padding", [False, True])
def test_nystrom_attention_equals_its_definition(scaling: str, padding: bool) -> None:
    q, k, v = inputs()
    mask = torch.arange(24) < torch.tensor([[24], [17 if padding else 24]])
    actual = Nystrom(6, scaling=scaling).build(3)(q, k, v, mask)
    torch.testing.assert_close(actual, naive(q, k, v, mask, 6, scaling), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("tokens", [24, 9])
def test_attention_is_exact_with_as_many_landmarks_as_tokens(tokens: int) -> None:
    q, k, v = inputs(tokens=tokens)
    mask = torch.arange(tokens).expand(2, -1) < 7
    exact = SoftmaxAttention(causal=False)(q, k, v, mask)
    torch.testing.assert_close(Nystrom(24).build(3)(q, k, v, mask)[:, :, :7], exact[:, :, :7])


def test_the_error_falls_as_landmarks_grow() -> None:
    q, k, v = inputs(tokens=64)
    q, k = (x.cumsum(-2) / 8 for x in (q, k))  # similar neighbours, as means of segments assume
    exact = SoftmaxAttention(causal=False)(q, k, v)
    errors = [(Nystrom(m).build(3)(q, k, v) - exact).norm() / exact.norm() for m in (1, 4, 16, 64)]
    assert all(fewer > 1.5 * more for fewer, more in pairwise(errors)), errors


def test_the_iteration_ends_near_the_inverse() -> None:
    torch.manual_seed(0)
    a = torch.softmax(torch.eye(8) * 4 + torch.randn(2, 3, 8, 8), dim=-1).double()
    for scaling in ("matrix", "batch"):
        torch.testing.assert_close(pseudo_inverse(a, scaling), torch.linalg.inv(a), rtol=0, atol=1e-3)


def test_examples_depend_on_each_other_with_scaling_by_the_batch_alone() -> None:
    q, k, v = inputs()
    meet = {}
    for scaling in ("matrix", "batch"):
        attend = Nystrom(6, scaling=scaling).build(3)
        meet[scaling] = not torch.allclose(attend(q, k, v)[:1], attend(q[:1], k[:1], v[:1]), rtol=0, atol=1e-12)
    assert meet == {"matrix": False, "batch": True}


def test_landmarks_that_do_not_divide_the_tokens_pad_them_with_masked_positions() -> None:
    q, k, v = inputs(tokens=22)
    longer = [F.pad(x, (0, 0, 0, 2), value=9.0) for x in (q, k, v)]
    mask = torch.arange(24).expand(2, -1) < 22
    actual = Nystrom(6, kernel=3).build(3).double()
    torch.testing.assert_close(actual(q, k, v), actual(*longer, mask)[:, :, :22])


def test_the_contents_of_padding_change_nothing() -> None:
    q, k, v = inputs()
    mask = torch.arange(24).expand(2, -1) < 15
    attend = Nystrom(6, kernel=5).build(3).double()
    changes = [torch.where(mask[:, None, :, None], x, 7.0) for x in (q, k, v)]
    assert torch.equal(attend(q, k, v, mask)[:, :, :15], attend(*changes, mask)[:, :, :15])


@pytest.mark.parametrize("tokens", [24, 4])
def test_the_skip_convolves_each_heads_masked_values_with_its_own_taps(tokens: int) -> None:
    q, k, v = inputs(tokens=tokens)
    mask = torch.arange(tokens).expand(2, -1) < tokens - 1
    with_skip, without = Nystrom(4, kernel=5).build(3).double(), Nystrom(4).build(3)
    values, expected = v * mask[:, None, :, None], without(q, k, v, mask)
    for h in range(3):
        for n in range(tokens):
            for tap in range(5):
                if 0 <= n + tap - 2 < tokens:
                    expected[:, h, n] += with_skip.taps[h, tap] * values[:, h, n + tap - 2]
    torch.testing.assert_close(with_skip(q, k, v, mask), expected)


def test_attention_is_in_fp32_under_autocast() -> None:
    q, k, v = (x.float() for x in inputs(size=32))
    attend = Nystrom(6, kernel=3).build(3)
    with torch.autocast("cpu", torch.bfloat16):
        inside = attend(q, k, v)
    assert torch.equal(inside, attend(q, k, v))


def test_no_landmarks_or_an_even_kernel_are_refused() -> None:
    with raises("out-of-range", option="landmarks", value=0, least=1):
        Nystrom(0)
    with raises("out-of-range", option="kernel", value=4):
        Nystrom(8, kernel=4)
