"""What a trained network is given by users: images, texts or lines of numbers, before the task's preprocessing.

Shapes: B = batch, C = channels, H and W = height and width, F = features, N = tokens.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInputs:
    """Images as bytes, [B, C, H, W].

    Attributes:
        channels: 1 for grey, 3 for red, green and blue.
        height: Height in pixels.
        width: Width in pixels.
        crop: Share of the shorter side that the central crop has; files of another size are resized first.
    """

    channels: int
    height: int
    width: int
    crop: float = 1.0

    def __str__(self) -> str:
        color = "grey" if self.channels == 1 else "RGB"
        return f"uint8 [batch, {self.channels}, {self.height}, {self.width}], {color} pixels from 0 to 255"

    def example(self) -> Tensor:
        """Return one image with many values."""
        pixels = torch.arange(self.channels * self.height * self.width) * 37 % 256
        return pixels.to(torch.uint8).view(1, self.channels, self.height, self.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInputs:
    """Lines of numbers, [B, F].

    Attributes:
        features: Numbers of a line.
    """

    features: int

    def __str__(self) -> str:
        return f"float32 [batch, {self.features}], the numbers of a line"

    def example(self) -> Tensor:
        """Return one line."""
        return torch.linspace(-1, 1, self.features)[None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextInputs:
    """Token ids, [B, N], of which the network predicts the next.

    Attributes:
        tokenizer: The contents of tokenizer.json.
        context: Most tokens.
    """

    tokenizer: str
    context: int

    def __str__(self) -> str:
        return f"int64 [batch, tokens], at most {self.context} token ids"

    def example(self) -> Tensor:
        """Return one text of full length."""
        return torch.zeros(1, self.context, dtype=torch.long)


InputFormat = ImageInputs | TableInputs | TextInputs

_KINDS: Mapping[str, type[Any]] = {"images": ImageInputs, "table": TableInputs, "text": TextInputs}


def to_json(input_format: InputFormat | None) -> str:
    """Return a format as JSON, "null" for none."""
    kind = next((name for name, kind in _KINDS.items() if isinstance(input_format, kind)), None)
    return json.dumps(None if input_format is None else {"kind": kind, **asdict(input_format)})


def from_json(text: str) -> InputFormat | None:
    """Parse what `to_json` wrote. Raises ValueError, TypeError or KeyError for anything else."""
    record = json.loads(text)
    return None if record is None else _KINDS[record.pop("kind")](**record)
