"""Normalisation by name, so that a module and its closed form are made from the same choice."""

from dataclasses import dataclass
from typing import Literal

from torch import nn


@dataclass(frozen=True, slots=True)
class Norm:
    """Which normalisation a network uses before its layers and at its end.

    Attributes:
        kind: "layer" has a scale and a shift, "layer-scale" is the same without the shift, "layer-bare" without both,
            and "rms" (Zhang and Sennrich, 2019), which does not centre either, has a scale only.
        eps: Added to the variance, or the mean square.
    """

    kind: Literal["layer", "layer-scale", "layer-bare", "rms"]
    eps: float

    def build(self, width: int) -> nn.Module:
        """The module for [..., width]."""
        if self.kind == "rms":
            return nn.RMSNorm(width, self.eps)
        return nn.LayerNorm(width, self.eps, self.kind != "layer-bare", bias=self.kind == "layer")

    def params(self, width: int) -> int:
        """How many parameters that module has."""
        return width * {"layer": 2, "layer-scale": 1, "layer-bare": 0, "rms": 1}[self.kind]
