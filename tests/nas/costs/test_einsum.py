"""MACs of einsums, compared with the matrix products that torch makes of them."""

from typing import Any

import torch
from torch import Tensor, nn

from grouped import grouped
from nas.costs.count import count_macs
from nas.costs.einsum import einsum_macs

EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("...hd,hd->...h", [(2, 37, 4, 309), (4, 309)]),
    ("bnhd,bmhd->bhnm", [(3, 17, 5, 7), (3, 19, 5, 7)]),
    ("ij, bnj -> bni", [(131, 129), (2, 37, 129)]),
    ("ij,jk", [(101, 103), (103, 107)]),
    ("i,i", [(12347,), (12347,)]),
    ("...ij,...jk->...ik", [(11, 1, 31, 37), (13, 37, 41)]),
    ("...ij,...jk", [(13, 31, 37), (1, 37, 41)]),
    ("nm,ab->namb", [(12, 13), (14, 15)]),
    ("bij,bj->bi", [(3, 40, 41), (3, 41)]),
    ("ij,k->k", [(12, 13), (14,)]),
    ("ijx,jk->ik", [(101, 103, 5), (103, 107)]),
    ("ij,jk->ik", [(2, 3), (1, 4)]),  # broadcast: torch sums the first operand before the product
    ("ij->ji", [(12, 13)]),
    ("ii->i", [(12, 12)]),
    ("ab,bc,cd->ad", [(21, 23), (23, 5), (5, 29)]),
    ("ab,cb,dc,a->d", [(21, 23), (5, 23), (29, 5), (21,)]),
]


class Einsum(nn.Module):
    """An einsum as a network."""

    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def forward(self, *operands: Tensor) -> Tensor:
        return torch.einsum(self.equation, *operands)


class AlongAPath(nn.Module):
    """An einsum of three operands that contracts the last two first."""

    def forward(self, *operands: Tensor) -> Tensor:
        result: Tensor = torch._VF.einsum("ab,bc,cd->ad", operands, path=[1, 2, 0, 1])  # type: ignore[attr-defined]
        return result


def test_einsums_are_counted_as_torchs_matrix_products(agree: Any) -> None:
    with grouped() as case:
        for equation, shapes in EQUATIONS:
            with case(equation):
                agree(Einsum(equation), tuple(torch.randn(shape) for shape in shapes), None)


def test_a_traced_path_is_used(agree: Any) -> None:
    operands = tuple(torch.randn(shape) for shape in ((2, 100), (100, 3), (3, 50)))
    assert count_macs(AlongAPath(), operands)[0] == 100 * 3 * 50 + 2 * 100 * 50
    agree(AlongAPath(), operands, None)


def test_a_path_gives_the_order_of_contractions() -> None:
    shapes = [(2, 100), (100, 3), (3, 50)]
    assert einsum_macs("ab,bc,cd->ad", shapes) == 2 * 100 * 3 + 2 * 3 * 50
    assert einsum_macs("ab,bc,cd->ad", shapes, [1, 2, 0, 1]) == 100 * 3 * 50 + 2 * 100 * 50
