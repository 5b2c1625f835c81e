"""Dashes and discs in pixels, as Pathfinder's generator draws them: at twice the resolution, then downsampled.

Pillow draws the dashes; another version may draw other pixels, which changes the data's fingerprint.

Shapes: S = side of an image, W = side of a stamp.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

Array = np.ndarray[Any, Any]
Pixel = tuple[int, int]
"""Row and column."""

SIDE = 32
LENGTH, MARGIN = 2, 1
"""Length and margin of a dash, in pixels."""
_THICKNESS, _FINER = 0.5, 2
REACH = LENGTH + math.ceil(_THICKNESS) + MARGIN
"""Pixels from the middle of a stamp to its edge."""
_MARKER = 1.5
"""Radius of the disc at a marked end."""


def step_to(point: Pixel, angle: float, distance: float) -> Pixel:
    """Return the pixel at a distance in a direction, rounded up as in the generator."""
    return math.ceil(point[0] + distance * math.sin(angle)), math.ceil(point[1] + distance * math.cos(angle))


def stamp_dash(tail: Pixel, angle: float) -> tuple[Array, Array]:
    """Return a dash that starts at `tail` and its occupancy, each [S, S] from 0 to 1."""
    dash, room = stamps(round(math.remainder(angle, 2 * math.pi), 9))
    return _place(dash, tail), _place(room, tail)


@cache
def stamps(angle: float) -> tuple[Array, Array]:
    """Return a dash that starts at the middle and its occupancy with margin, each [W, W] from 0 to 1."""
    side, middle = 2 * REACH * _FINER + 1, REACH * _FINER
    head = step_to((middle, middle), angle, LENGTH * _FINER)
    fine = Image.new("L", (side, side))
    ImageDraw.Draw(fine).line([(middle, middle), head[::-1]], fill=255, width=round(_THICKNESS * _FINER))
    dash = np.asarray(fine) > 0
    rows, columns = np.mgrid[:side, :side]
    radius = MARGIN * _FINER
    room = np.zeros_like(dash)
    for row, column in np.argwhere(dash):
        room |= (rows - row) ** 2 + (columns - column) ** 2 <= radius**2
    return _coarse(dash, 2 * REACH + 1), _coarse(room, 2 * REACH + 1)


@cache
def disc(centre: Pixel) -> Array:
    """Return a marker, [S, S] from 0 to 1."""
    rows, columns = np.mgrid[: SIDE * _FINER, : SIDE * _FINER]
    away = (rows - centre[0] * _FINER) ** 2 + (columns - centre[1] * _FINER) ** 2
    return _coarse(away <= (_MARKER * _FINER) ** 2, SIDE)


def _coarse(fine: Array, side: int) -> Array:
    """Downsample a binary image to [side, side]."""
    picture = Image.fromarray(np.where(fine, 255, 0).astype(np.uint8))
    return np.asarray(picture.resize((side, side), Image.Resampling.LANCZOS)) / 255


def _place(stamp: Array, middle: Pixel) -> Array:
    """Place a stamp on an empty canvas, cropped at the edges."""
    larger = np.zeros((SIDE + 2 * REACH, SIDE + 2 * REACH))
    larger[middle[0] : middle[0] + len(stamp), middle[1] : middle[1] + len(stamp)] = stamp
    return larger[REACH : REACH + SIDE, REACH : REACH + SIDE]
