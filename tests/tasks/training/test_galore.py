"""GaLore against algorithm 2 of its paper in NumPy (Zhao et al., 2024)."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from grouped import grouped
from tasks.training.galore import EPSILON, GaLoreAdamW

Matrix = NDArray[np.float64]


def literal(
    weight: Matrix, gradients: list[Matrix], rank: int, gap: int, scale: float, lr: float, decay: float
) -> Matrix:
    """The algorithm for one matrix; it projects the smaller side."""
    m, n = weight.shape
    first: Any = 0.0
    second: Any = 0.0
    side: Matrix = np.zeros(0)
    for t, gradient in enumerate(gradients):
        if t % gap == 0:
            u, _, vt = svd(gradient)
            side = u[:, :rank] if m < n else vt[:rank].T
        low = side.T @ gradient if m < n else gradient @ side
        first = 0.9 * first + 0.1 * low
        second = 0.999 * second + 0.001 * low**2
        normal = (first / (1 - 0.9 ** (t + 1))) / (np.sqrt(second / (1 - 0.999 ** (t + 1))) + EPSILON)
        back = side @ normal if m < n else normal @ side.T
        weight = weight - lr * decay * weight - lr * scale * back
    return weight


def svd(matrix: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """torch's singular vectors: their signs are arbitrary, and averages depend on them."""
    u, s, vt = torch.linalg.svd(torch.tensor(matrix), full_matrices=False)
    return u.numpy(), s.numpy(), vt.numpy()


def step_galore(weight: Matrix, gradients: list[Matrix], **options: Any) -> Tensor:
    parameter = nn.Parameter(torch.tensor(weight))
    maps = options.pop("maps", 1)
    optimizer = GaLoreAdamW([{"params": [parameter], "maps": maps}], **options)
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
    return parameter.detach()


def random_matrices(*shape: int, steps: int = 7) -> tuple[Matrix, list[Matrix]]:
    """A weight, and gradients with well-separated singular values."""
    random = np.random.default_rng(0)
    return random.normal(size=shape), [random.normal(size=shape) for _ in range(steps)]


def test_a_step_matches_the_algorithm() -> None:
    with grouped() as case:
        for shape in ((6, 4), (4, 6), (5, 5)):
            weight, gradients = random_matrices(*shape)
            for rank, gap in ((2, 3), (1, 1), (3, 200), (128, 4)):
                with case(f"{shape}, rank {rank}, gap {gap}"):
                    expected = literal(weight, gradients, rank, gap, scale=0.25, lr=0.1, decay=0.01)
                    after = step_galore(weight, gradients, rank=rank, gap=gap, scale=0.25, lr=0.1, weight_decay=0.01)
                    torch.testing.assert_close(after, torch.tensor(expected), rtol=1e-10, atol=1e-12)


def test_a_joined_weight_updates_like_separate_maps() -> None:
    weight, gradients = random_matrices(9, 4)
    options = {"rank": 2, "gap": 3, "scale": 0.5, "lr": 0.1}
    after = step_galore(weight, gradients, maps=3, **options)
    for part in range(3):
        rows = slice(3 * part, 3 * part + 3)
        alone = step_galore(weight[rows], [gradient[rows] for gradient in gradients], **options)
        torch.testing.assert_close(after[rows], alone, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(after, step_galore(weight, gradients, **options))


def test_one_step_of_full_rank_is_adam_along_singular_vectors() -> None:
    """Adam's first step is the sign, here the gradient's orthogonal factor."""
    weight, (gradient, *_) = random_matrices(4, 4, steps=1)
    u, s, vt = np.linalg.svd(gradient)
    direction = np.sign(u * s) @ vt
    after = step_galore(weight, [gradient], rank=4, gap=1, scale=1.0, lr=0.1)
    torch.testing.assert_close(after, torch.tensor(weight - 0.1 * direction), rtol=1e-4, atol=1e-4)


def test_the_size_of_the_state_follows_the_rank() -> None:
    parameter = nn.Parameter(torch.zeros(12, 32))
    optimizer = GaLoreAdamW([parameter], lr=0.1, rank=2)
    parameter.grad = torch.randn(12, 32)
    optimizer.step()
    shapes = {name: tuple(t.shape) for name, t in optimizer.state[parameter].items() if isinstance(t, Tensor)}
    assert shapes == {"basis": (1, 12, 2), "first": (1, 2, 32), "second": (1, 2, 32)}
    sizes = [t.untyped_storage().nbytes() for t in optimizer.state[parameter].values() if isinstance(t, Tensor)]
    assert sum(sizes) == 4 * (12 * 2 + 2 * 2 * 32)  # no larger storage behind them


def test_a_gradient_that_is_not_finite_gives_such_weights() -> None:
    for wrong in (math.nan, math.inf):
        weight, (gradient, *_) = random_matrices(4, 3, steps=1)
        gradient[1, 1] = wrong
        assert not step_galore(weight, [gradient], lr=0.1).isfinite().all()


def test_weights_without_a_gradient_and_dtypes_are_unchanged() -> None:
    still, weight = nn.Parameter(torch.ones(3, 3)), nn.Parameter(torch.ones(4, 3, dtype=torch.bfloat16))
    optimizer = GaLoreAdamW([still, weight], lr=0.1, rank=2)
    weight.grad = torch.randn(4, 3).bfloat16()
    optimizer.step()
    assert still.eq(1).all()
    assert {t.dtype for t in optimizer.state[weight].values() if isinstance(t, Tensor)} == {torch.bfloat16}
    assert not weight.eq(1).all()


def test_a_step_returns_the_loss_of_its_closure() -> None:
    weight = nn.Parameter(torch.ones(2, 2))

    def closure() -> Tensor:
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert GaLoreAdamW([weight], lr=0.1).step(closure) == 4
    assert not weight.eq(1).any()
