"""GaLore: Adam with low-rank gradient projections (Zhao et al., 2024, arXiv 2403.03507, algorithm 2).

Shapes: M = maps in one weight, O = outputs of one, I = its inputs, R = rank, S = the smaller of O and I.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, final

import torch
from torch import Tensor
from torch.optim import Optimizer

EPSILON = 1e-6
"""Adam's epsilon in the published code, for projected and all other parameters."""


@final
class GaLoreAdamW(Optimizer):
    """AdamW on the largest singular vectors of the gradient, on the smaller side of each map [O, I].

    If both sides are equal it projects the inputs, as the published code does. Weight decay is decoupled.

    Args:
        params: Weights [M * O, I], or groups of them. A group's `maps` is M: each of the M maps is projected
            separately.
        lr: The learning rate.
        betas: Betas of both moments.
        weight_decay: Weight decay coefficient; a step decays by this times the learning rate.
        rank: R; at most the side.
        gap: Steps between updates of the projection. The moments are kept across updates.
        scale: Factor of the update after it is projected back.
    """

    def __init__(
        self,
        params: Iterable[Any],
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        rank: int = 128,
        gap: int = 200,
        scale: float = 0.25,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay, "rank": rank, "gap": gap, "scale": scale}
        super().__init__(params, {**defaults, "maps": 1})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every weight that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    _update_weight(weight, weight.grad, self.state[weight], group)
        return loss


def _update_weight(weight: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    gradient = gradient.unflatten(0, (group["maps"], -1))  # [M, O, I]
    by_inputs = gradient.shape[-2] >= gradient.shape[-1]
    step = state.get("step", 0)
    if step % group["gap"] == 0:
        state["basis"] = _basis(gradient, group["rank"], by_inputs)
    basis = state["basis"]
    low = gradient @ basis if by_inputs else basis.mT @ gradient  # [M, O, R] or [M, R, I]
    if not step:
        state["first"], state["second"] = torch.zeros_like(low), torch.zeros_like(low)
    state["step"] = step + 1
    update = _adam(low, state, group["betas"])
    update = update @ basis.mT if by_inputs else basis @ update
    weight.mul_(1 - group["lr"] * group["weight_decay"])
    weight.add_(update.flatten(0, 1), alpha=-group["lr"] * group["scale"])


def _adam(gradient: Tensor, state: dict[str, Any], betas: tuple[float, float]) -> Tensor:
    """Return Adam's update for a gradient; update its moments in place."""
    (beta1, beta2), step = betas, state["step"]
    state["first"].lerp_(gradient, 1 - beta1)
    state["second"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    root: Tensor = (state["second"].sqrt() / math.sqrt(1 - beta2**step)).add_(EPSILON)
    update: Tensor = state["first"] / root / (1 - beta1**step)
    return update


def _basis(gradient: Tensor, rank: int, by_inputs: bool) -> Tensor:
    """Return the top singular vectors [M, S, R] of each map's gradient [M, O, I].

    For a non-finite gradient they are arbitrary; the check of the loss will report it.
    """
    exact = gradient.to(torch.promote_types(gradient.dtype, torch.float32))
    u, _, vh = torch.linalg.svd(exact.nan_to_num(0.0, 0.0, 0.0), full_matrices=False)
    vectors = vh.mT if by_inputs else u
    basis: Tensor = vectors[..., :rank].contiguous().to(gradient.dtype)
    return basis
