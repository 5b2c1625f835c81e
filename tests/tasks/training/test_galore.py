"""GaLore against what its paper says, written out in NumPy (Zhao et al., 2024, algorithm 2)."""

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
    """The algorithm for one matrix. It projects the smaller side, with P from the left or Q from the right."""
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
    """Singular vectors are what they are but for their signs, which the averages that are kept depend on: torch's."""
    u, s, vt = torch.linalg.svd(torch.tensor(matrix), full_matrices=False)
    return u.numpy(), s.numpy(), vt.numpy()


def moved(weight: Matrix, gradients: list[Matrix], **options: Any) -> Tensor:
    parameter = nn.Parameter(torch.tensor(weight))
    maps = options.pop("maps", 1)
    optimizer = GaLoreAdamW([{"params": [parameter], "maps": maps}], **options)
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
    return parameter.detach()


def drawn(*shape: int, steps: int = 7) -> tuple[Matrix, list[Matrix]]:
    """A weight, and gradients whose singular values are well apart, so that their vectors are no accident."""
    random = np.random.default_rng(0)
    return random.normal(size=shape), [random.normal(size=shape) for _ in range(steps)]


def test_a_matrix_moves_as_the_algorithm_says() -> None:
    with grouped() as case:
        for shape in ((6, 4), (4, 6), (5, 5)):
            weight, gradients = drawn(*shape)
            for rank, gap in ((2, 3), (1, 1), (3, 200), (128, 4)):
                with case(f"{shape}, rank {rank}, gap {gap}"):
                    expected = literal(weight, gradients, rank, gap, scale=0.25, lr=0.1, decay=0.01)
                    found = moved(weight, gradients, rank=rank, gap=gap, scale=0.25, lr=0.1, weight_decay=0.01)
                    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-10, atol=1e-12)


def test_joined_maps_move_like_separate_ones() -> None:
    weight, gradients = drawn(9, 4)
    options = {"rank": 2, "gap": 3, "scale": 0.5, "lr": 0.1}
    found = moved(weight, gradients, maps=3, **options)
    for part in range(3):
        rows = slice(3 * part, 3 * part + 3)
        alone = moved(weight[rows], [gradient[rows] for gradient in gradients], **options)
        torch.testing.assert_close(found[rows], alone, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(found, moved(weight, gradients, **options))


def test_one_step_of_full_rank_is_adam_along_singular_vectors() -> None:
    """Of Adam's first step only signs are left; along singular vectors these are the gradient's orthogonal factor."""
    weight, (gradient, *_) = drawn(4, 4, steps=1)
    u, s, vt = np.linalg.svd(gradient)
    turned = np.sign(u * s) @ vt
    found = moved(weight, [gradient], rank=4, gap=1, scale=1.0, lr=0.1)
    torch.testing.assert_close(found, torch.tensor(weight - 0.1 * turned), rtol=1e-4, atol=1e-4)


def test_the_size_of_the_state_follows_the_rank() -> None:
    parameter = nn.Parameter(torch.zeros(12, 32))
    optimizer = GaLoreAdamW([parameter], lr=0.1, rank=2)
    parameter.grad = torch.randn(12, 32)
    optimizer.step()
    kept = {name: tuple(one.shape) for name, one in optimizer.state[parameter].items() if isinstance(one, Tensor)}
    assert kept == {"basis": (1, 12, 2), "first": (1, 2, 32), "second": (1, 2, 32)}
    sizes = [one.untyped_storage().nbytes() for one in optimizer.state[parameter].values() if isinstance(one, Tensor)]
    assert sum(sizes) == 4 * (12 * 2 + 2 * 2 * 32)  # and they hold no larger tensor alive


def test_a_gradient_that_is_not_finite_gives_such_weights() -> None:
    for wrong in (math.nan, math.inf):
        weight, (gradient, *_) = drawn(4, 3, steps=1)
        gradient[1, 1] = wrong
        assert not moved(weight, [gradient], lr=0.1).isfinite().all()


def test_weights_without_a_gradient_stay_and_bfloat16_stays_that() -> None:
    still, weight = nn.Parameter(torch.ones(3, 3)), nn.Parameter(torch.ones(4, 3, dtype=torch.bfloat16))
    optimizer = GaLoreAdamW([still, weight], lr=0.1, rank=2)
    weight.grad = torch.randn(4, 3).bfloat16()
    optimizer.step()
    assert still.eq(1).all()
    assert {one.dtype for one in optimizer.state[weight].values() if isinstance(one, Tensor)} == {torch.bfloat16}
    assert not weight.eq(1).all()


def test_a_step_returns_the_loss_of_its_closure() -> None:
    weight = nn.Parameter(torch.ones(2, 2))

    def closure() -> Tensor:
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert GaLoreAdamW([weight], lr=0.1).step(closure) == 4
    assert not weight.eq(1).any()
