"""The diffusion process and its training loss (Ho et al., 2020; Nichol and Dhariwal, 2021).

With beta_t rising linearly from 1e-4 to 0.02 over 1,000 steps and a_t = (1 - beta_1) ... (1 - beta_t):

    x_t = sqrt(a_t) x_0 + sqrt(1 - a_t) noise

A network predicts the noise in x_t and, as v, the position of the reverse step's variance between its bounds. The loss
is the mean squared error of the noise plus the variational bound, in bits per value. The bound does not train the mean.
This is the objective of DiT's code, where the bound has weight 1 (Nichol and Dhariwal: 0.001). Normal probabilities are
exact here; the code approximates them by tanh.

Shapes: B = batch, ... = a picture's axes. Times count from 0, as in the code: t here is t + 1 in the papers.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

STEPS = 1000
FIRST, LAST = 1e-4, 0.02
"""beta_1 and beta_T."""
_HALF_BIN = 1 / 255
"""Half the width of one of 256 levels in [-1, 1]. The bound's last term is for such pictures."""


def add_noise(start: Tensor, noise: Tensor, times: Tensor) -> Tensor:
    """Return x_t for pictures and standard normal noise [B, ...] at times [B], 0 .. STEPS - 1."""
    alphas_bar = _gather(_alphas_bar(), times, start)
    return (alphas_bar.sqrt() * start + (1 - alphas_bar).sqrt() * noise).to(start.dtype)


def squared_errors(outputs: Tensor, noise: Tensor) -> Tensor:
    """Return the mean squared error of the noise [B, C, ...] per example, [B], for outputs [B, 2 C, ...]."""
    return (outputs.chunk(2, dim=1)[0] - noise).square().flatten(1).mean(dim=1)


def bounds(outputs: Tensor, start: Tensor, noise: Tensor, times: Tensor) -> Tensor:
    """Return the variational bound's term at times [B], in bits per value, each [B]; the mean gets no gradient.

    The term is the divergence of the network's reverse step from the true one; at time 0, the negative log likelihood
    of the picture's levels (Ho et al., equations 5 to 7 and 13; Nichol and Dhariwal, equation 15).
    """
    prediction, v = outputs.chunk(2, dim=1)
    alphas_bar, beta = _alphas_bar(), _betas()
    alphas_bar_prev = torch.cat((alphas_bar.new_ones(1), alphas_bar[:-1]))
    posterior_variance = beta * (1 - alphas_bar_prev) / (1 - alphas_bar)  # the variance of the true reverse step
    # It is 0 at time 0, which has no logarithm.
    posterior_variance = torch.cat((posterior_variance[1:2], posterior_variance[1:]))
    low, high = _gather(posterior_variance.log(), times, start), _gather(beta.log(), times, start)
    log_variance = low + (v + 1) / 2 * (high - low)  # of the network's reverse step
    # Both steps' means are the same linear function of x_0 and x_t, so they differ by the error of x_0 alone.
    start_factor = _gather(alphas_bar_prev.sqrt() * beta / (1 - alphas_bar), times, start)
    noise_factor = _gather((1 / alphas_bar - 1).sqrt(), times, start)
    error = start_factor * noise_factor * (prediction.detach() - noise)
    divergence = 0.5 * (log_variance - low - 1 + (low - log_variance).exp() + error.square() * (-log_variance).exp())
    nats = torch.where(_like(times == 0, start), -_log_levels(start, error, log_variance / 2), divergence)
    return nats.flatten(1).mean(dim=1) / math.log(2)


def _log_levels(start: Tensor, error: Tensor, log_deviation: Tensor) -> Tensor:
    """Return the log probability of each value's level under a normal distribution whose mean is off by `error`."""
    inverse = (-log_deviation).exp()
    above, below = ((error + side) * inverse for side in (_HALF_BIN, -_HALF_BIN))
    inside = torch.special.ndtr(above) - torch.special.ndtr(below)
    ends = torch.where(start > 0.999, torch.special.ndtr(-below), inside)
    ends = torch.where(start < -0.999, torch.special.ndtr(above), ends)
    return ends.clamp(min=1e-12).log()


@lru_cache(maxsize=1)
def _betas() -> Tensor:
    return torch.linspace(FIRST, LAST, STEPS, dtype=torch.float64, device="cpu")


@lru_cache(maxsize=1)
def _alphas_bar() -> Tensor:
    """Return a_t: the remaining fraction of the picture's variance, [STEPS]."""
    return (1 - _betas()).cumprod(dim=0)


def _gather(table: Tensor, times: Tensor, like: Tensor) -> Tensor:
    """Return a table's values at times [B], as [B, 1, ...] with the type and device of `like`."""
    return _like(table.to(like.device)[times].to(like.dtype), like)


def _like(values: Tensor, like: Tensor) -> Tensor:
    return values.view(-1, *[1] * (like.dim() - 1))
