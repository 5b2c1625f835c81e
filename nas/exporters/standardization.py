"""Recognize preprocessing that is a standardization of each channel, which image libraries describe by two numbers.

Shapes: C = channels, H and W = height and width.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.input_formats import ImageInputs

_DIGITS = 6
"""Decimals of mean and std; fp32 gives about seven digits."""


@dataclass(frozen=True, slots=True)
class Standardization:
    """The map from bytes to (bytes / 255 - mean) / std, with one mean and std for each channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, images: Tensor) -> Tensor:
        """Map bytes [B, C, H, W] to numbers of the same shape, in fp32."""
        mean, std = (torch.tensor(values, device=images.device).view(-1, 1, 1) for values in (self.mean, self.std))
        return (images / 255 - mean) / std


def standardization_of(preprocess: Callable[[Tensor], Tensor], image: ImageInputs) -> Standardization | None:
    """Return the standardization that equals a task's preprocessing of such images, or None if there is none."""
    black = torch.zeros(1, image.channels, image.height, image.width, dtype=torch.uint8)
    outputs = [preprocess(images) for images in (black, ~black, image.example())]
    if any(output.shape != black.shape for output in outputs):
        return None
    low, high = (output.double().mean(dim=(0, 2, 3)) for output in outputs[:2])  # [C]
    std = 1 / (high - low)
    mean = -low * std
    candidate = Standardization(*(tuple(round(x, _DIGITS) for x in values.tolist()) for values in (mean, std)))
    same = torch.allclose(candidate(image.example()), outputs[2].float(), rtol=1e-5, atol=1e-5)
    return candidate if same and min(candidate.std) > 0 else None
