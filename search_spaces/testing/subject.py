"""The argument of contract checks, and their comparison of tensors."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import ContractError
from search_spaces.testing.small_networks import WIDTH
from search_spaces.topologies.base import Topology

CountMacs = Callable[[nn.Module, tuple[Tensor, ...]], int]
"""Maps a network and its inputs to the multiply-accumulates of a forward pass."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The topology under test.

    Attributes:
        name: Its name in output.
        kind: The topology's class.
        options: Its options.
        still: Names of the topology's parameters that need not change in training.
        count_macs: The counter that the closed form is compared with.
    """

    name: str
    kind: type[Topology]
    options: Any
    still: Collection[str]
    count_macs: CountMacs

    @property
    def topology(self) -> tuple[type[Topology], Any]:
        """The class and its options."""
        return self.kind, self.options

    @property
    def needs_heads(self) -> bool:
        """Whether it refuses networks without heads."""
        return self.kind.incompatibility_reason(Architecture(depth=1, width=WIDTH, hidden=1), self.options) is not None


def require_close(check: str, actual: Tensor, expected: Tensor, off: float | None = None) -> None:
    """Raise a ContractError of this rule unless two tensors are close, by `torch.testing` or to within `off`."""
    try:
        torch.testing.assert_close(actual, expected, rtol=off, atol=off)
    except AssertionError as error:
        raise ContractError(check, " ".join(str(error).split())) from error
