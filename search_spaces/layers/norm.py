"""Norms by name, so that a module and its closed form follow from the same choice."""

from dataclasses import dataclass
from typing import Literal

from torch import nn


@dataclass(frozen=True, slots=True)
class Norm:
    """The norm that a network uses before its layers and at its end.

    Attributes:
        kind: "layer" has a scale and a shift, "layer-scale" a scale only, and "layer-bare" neither. "rms" (Zhang and
            Sennrich, 2019) does not center and has a scale only.
        eps: Added to the variance, or to the mean square.
    """

    kind: Literal["layer", "layer-scale", "layer-bare", "rms"]
    eps: float

    def build(self, width: int) -> nn.Module:
        """Build the module for [..., width]."""
        if self.kind == "rms":
            return nn.RMSNorm(width, self.eps)
        return nn.LayerNorm(width, self.eps, self.kind != "layer-bare", bias=self.kind == "layer")

    def params(self, width: int) -> int:
        """Return the number of parameters of that module."""
        return width * {"layer": 2, "layer-scale": 1, "layer-bare": 0, "rms": 1}[self.kind]
