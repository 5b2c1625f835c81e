"""The diffusion process and its bound, against chains of steps and divergences of normals."""

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from tasks.diffusion.noise import STEPS, add_noise, bounds, squared_errors

BETAS = [1e-4 + (0.02 - 1e-4) * t / 999 for t in range(STEPS)]


def signal_share(t: int) -> float:
    """The cumulative product a_t."""
    return math.prod(1 - beta for beta in BETAS[: t + 1])


def pictures(batch: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    start = (torch.rand(batch, 2, 3, 3, generator=generator).double() * 2 - 1).clamp(-0.99, 0.99)
    return start, torch.randn(start.shape, generator=generator).double()


def test_noise_matches_the_chain_of_steps() -> None:
    times = torch.tensor([0, 1, 40, 999])
    start, noise = pictures(4)
    noisy = add_noise(start, noise, times)
    for i, t in enumerate(times.tolist()):
        mean, variance = 1.0, 0.0
        for beta in BETAS[: t + 1]:  # x <- sqrt(1 - beta) x + sqrt(beta) noise
            mean, variance = mean * math.sqrt(1 - beta), variance * (1 - beta) + beta
        torch.testing.assert_close(noisy[i], mean * start[i] + math.sqrt(variance) * noise[i])


def test_noise_keeps_the_dtype() -> None:
    start = torch.zeros(2, 1, 4, 4)
    assert add_noise(start, torch.randn_like(start), torch.tensor([3, 4])).dtype == torch.float32


def naive_bound(start: Tensor, noise: Tensor, outputs: Tensor, t: int) -> float:
    """The bound of one picture in bits, by Bayes' rule and torch's distributions."""
    eps, v = outputs[: len(start)], outputs[len(start) :]
    noisy = math.sqrt(signal_share(t)) * start + math.sqrt(1 - signal_share(t)) * noise
    guess = (noisy - math.sqrt(1 - signal_share(t)) * eps) / math.sqrt(signal_share(t))

    def back(of: Tensor) -> tuple[Tensor, float]:
        """Mean and variance of x_{t-1} given x_t and x_0, by a product of normal densities."""
        prior_mean, prior_variance = math.sqrt(signal_share(t - 1)) * of, 1 - signal_share(t - 1)
        seen_mean, seen_variance = noisy / math.sqrt(1 - BETAS[t]), BETAS[t] / (1 - BETAS[t])
        precision = 1 / prior_variance + 1 / seen_variance
        return (prior_mean / prior_variance + seen_mean / seen_variance) / precision, 1 / precision

    low = back(start)[1] if t else (1 - signal_share(0)) / (1 - signal_share(1)) * BETAS[1]
    share = (v + 1) / 2
    deviation = (share * math.log(BETAS[t]) + (1 - share) * math.log(low)).exp().sqrt()
    if t:
        mean, variance = back(start)
        nats = kl_divergence(Normal(mean, math.sqrt(variance)), Normal(back(guess)[0], deviation))
        return nats.mean().item() / math.log(2)
    bins = Normal(guess, deviation)
    likely = bins.cdf(start + 1 / 255) - bins.cdf(start - 1 / 255)
    likely = torch.where(start == 1, 1 - bins.cdf(start - 1 / 255), likely)
    likely = torch.where(start == -1, bins.cdf(start + 1 / 255), likely)
    return -likely.clamp(min=1e-12).log2().mean().item()


def test_bound_is_the_divergence_from_the_true_reverse_step() -> None:
    start, noise = pictures(3)
    start[0, 0, 0], start[1, 1, 1] = 1, -1
    generator = torch.Generator().manual_seed(1)
    actual, expected = {}, {}
    for t in (0, 1, 2, 500, 999):
        # Outputs of a trained network, and arbitrary ones.
        for far in (0.01, 1.0):
            error = far * torch.randn(noise.shape, generator=generator).double()
            outputs = torch.cat((noise + error, torch.randn(noise.shape, generator=generator).double()), dim=1)
            actual[t, far] = bounds(outputs, start, noise, torch.full((3,), t)).tolist()
            naive_bounds = [naive_bound(*example, t) for example in zip(start, noise, outputs, strict=True)]
            expected[t, far] = pytest.approx(naive_bounds, rel=1e-6, abs=1e-8)
    assert actual == expected


def test_gradient_of_the_bound_reaches_the_variance_alone() -> None:
    start, noise = pictures(2)
    outputs = torch.randn(2, 4, 3, 3, requires_grad=True)
    bounds(outputs, start.float(), noise.float(), torch.tensor([0, 300])).sum().backward()
    assert outputs.grad is not None
    assert not outputs.grad[:, :2].any()
    assert outputs.grad[:, 2:].all()


def test_squared_errors_ignore_the_variance() -> None:
    _, noise = pictures(2)
    outputs = torch.cat((noise + torch.tensor([1.0, 2.0])[:, None, None, None], noise + 9), dim=1)
    torch.testing.assert_close(squared_errors(outputs, noise), torch.tensor([1.0, 4.0]).double())
