"""Rotary positions against complex numbers."""

import torch

from search_spaces.layers.rotary import Rotary


def test_rotary_positions_turn_each_pair_as_a_complex_number() -> None:
    x = torch.randn(2, 3, 7, 10)
    expected = torch.empty_like(x)
    for n in range(7):
        for p in range(5):
            turn = torch.polar(torch.tensor(1.0), torch.tensor(n / 10_000 ** (2 * p / 10)))
            rotation = torch.complex(x[:, :, n, p], x[:, :, n, p + 5]) * turn
            expected[:, :, n, p], expected[:, :, n, p + 5] = rotation.real, rotation.imag
    torch.testing.assert_close(Rotary(10, 16)(x), expected)


def test_rotary_positions_leave_the_last_of_an_odd_number_of_features() -> None:
    x = torch.randn(1, 1, 4, 5)
    rotation = Rotary(5, 4)(x)
    assert torch.equal(rotation[..., 4], x[..., 4])
    torch.testing.assert_close(rotation[..., :4], Rotary(4, 4)(x[..., :4]))
