"""Normalisation by name, so that a module and its closed form are made from the same choice."""

from dataclasses import dataclass
from typing import Literal

from torch import nn


@dataclass(frozen=True, slots=True)
class Norm:
    """Which normalisation a network uses before its layers and at its end.

    Attributes:
        kind: "layer" has a scale and a shift, "rms" (Zhang and Sennrich, 2019) a scale only.
        eps: Added to the variance, or the mean square.
    """

    kind: Literal["layer", "rms"]
    eps: float

    def build(self, width: int) -> nn.Module:
        """The module for [..., width]."""
        return nn.LayerNorm(width, self.eps) if self.kind == "layer" else nn.RMSNorm(width, self.eps)

    def params(self, width: int) -> int:
        """How many parameters that module has."""
        return 2 * width if self.kind == "layer" else width
