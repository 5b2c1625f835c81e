"""GaLore: Adam that remembers gradients in few dimensions (Zhao et al., 2024, arXiv 2403.03507, algorithm 2).

Shapes: M = maps side by side, O = outputs of one, I = its inputs, R = rank, S = the smaller of O and I.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, final

import torch
from torch import Tensor
from torch.optim import Optimizer

EPSILON = 1e-6
"""The published code's, of what is projected and of what is not."""


@final
class GaLoreAdamW(Optimizer):
    """Adam in the space of a gradient's largest singular vectors, on the smaller side of each map, [O, I].

    Where both sides are equal it is that of the inputs, as in the published code. Weight decay is AdamW's.

    Args:
        params: Weights [M * O, I], or groups of them. A group's `maps` is M: that many maps are projected each by
            itself.
        lr: The learning rate.
        betas: Of both averages.
        weight_decay: Share of a weight that is taken off, times the learning rate.
        rank: R; the whole side where it is smaller.
        gap: Steps from one projection to the next. The averages are kept.
        scale: Of the update that is projected back.
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
        """Move every weight that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    _move(weight, weight.grad, self.state[weight], group)
        return loss


def _move(weight: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
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
    """What Adam makes of a gradient, and its averages in place."""
    (fast, slow), step = betas, state["step"]
    state["first"].lerp_(gradient, 1 - fast)
    state["second"].mul_(slow).addcmul_(gradient, gradient, value=1 - slow)
    root: Tensor = (state["second"].sqrt() / math.sqrt(1 - slow**step)).add_(EPSILON)
    update: Tensor = state["first"] / root / (1 - fast**step)
    return update


def _basis(gradient: Tensor, rank: int, by_inputs: bool) -> Tensor:
    """The singular vectors [M, S, R] of each map's gradient [M, O, I] whose singular values are largest.

    A gradient that is not finite has none: then they are anybody's, and the loss says so soon enough.
    """
    exact = gradient.to(torch.promote_types(gradient.dtype, torch.float32))
    u, _, vh = torch.linalg.svd(exact.nan_to_num(0.0, 0.0, 0.0), full_matrices=False)
    vectors = vh.mT if by_inputs else u
    basis: Tensor = vectors[..., :rank].contiguous().to(gradient.dtype)
    return basis
