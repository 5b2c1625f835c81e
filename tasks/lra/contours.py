"""The generator of Pathfinder's images: two marked ends are on one dashed contour or on two.

It follows snakes2.py of github.com/drewlinsley/pathfinder with the parameters of the Long Range Arena for 32 x 32
pixels and contours of 14 (lra_benchmarks/data/pathfinder.py). Three things about the release are unknown:

* its seeds;
* whether it has single dashes beside the short contours, which the generator can add (`single_dashes`); they triple an
  image's brightness;
* how its resampling (SciPy and OpenCV of about 2018, which round in their own ways) draws a dash.

So these images are similar to the release's, but results on them are not comparable with results on the release.

Shapes: S = side of an image, K = pixels.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from tasks.lra.blocks import collect_blocks
from tasks.lra.stamps import LENGTH, MARGIN, REACH, SIDE, Array, Pixel, disc, stamp_dash, stamps, step_to

_PADDING = 1
_DASHES, _GAP = 14, 7
"""Dashes of the two long contours, and pixels between their starts."""
_SHORT_DASHES = _DASHES // 3
SHORT = 20 // _SHORT_DASHES
_CONTINUITY = 1.0
_LONG_BRIGHTNESS, _SHORT_BRIGHTNESS = 2 * 0.75, 2.0
_RETRIES = 2
"""Further attempts to draw a dash that touches something."""
_SHORT_RETRIES, _SINGLE_RETRIES = 4, 2
_SINGLE = int(150 * 123.5 / (7.5 + 13 * MARGIN + 4 * MARGIN**2)) - 2 * _DASHES - SHORT * _SHORT_DASHES
"""Attempts to place single dashes, few of which find room."""
_FREE = 0.3
"""Pixels of less occupancy are free."""
_FULL = 0.01
"""Minimum fraction of free pixels to start another contour."""
_BLOCK = 40
"""Images per block."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The image so far, [S, S], and its occupancy, [S, S] from 0 to 1, where nothing more may be drawn."""

    image: Array
    occupancy: Array

    def copy(self) -> "Canvas":
        return Canvas(self.image.copy(), self.occupancy.copy())


@dataclass(slots=True)
class Contour:
    """A growing contour.

    Attributes:
        pivot: Center of rotation of its last dash.
        angle: Direction of that dash.
        last: Occupancy of that dash, [S, S]; added to the canvas with the next dash, which touches it.
        tip: End of that dash.
    """

    pivot: Pixel
    angle: float
    last: Array
    tip: Pixel


def generate(examples: int, seed: int, *, single_dashes: bool = False) -> tuple[Array, Array]:
    """Generate images, bytes [E, S, S], and whether both marks are on one contour, [E].

    The result depends only on the arguments.
    """
    images: list[Array] = []
    labels: list[int] = []

    def add(block: list[tuple[Array, int]]) -> int:
        images.extend(image for image, _ in block)
        labels.extend(label for _, label in block)
        return len(images)

    collect_blocks(
        partial(make_block, seed, _BLOCK, single_dashes=single_dashes), add, examples, _BLOCK, "generating Pathfinder"
    )
    return np.stack(images[:examples]), np.array(labels[:examples], dtype=np.uint8)


def make_block(seed: int, size: int, number: int, *, single_dashes: bool = False) -> list[tuple[Array, int]]:
    """Generate block `number` of `size` images with their answers."""
    draw = random.Random(f"pathfinder/{seed}/{number}")  # noqa: S311  # data, not secrets
    return [example(draw, _SINGLE if single_dashes else 0) for _ in range(size)]


def example(draw: random.Random, single_dashes: int = 0) -> tuple[Array, int]:
    """Return one image and its answer."""
    while True:
        canvas, contours = two_contours(draw)
        if contours:
            break
    (begin, end), (_, distractor) = contours
    for _ in range(SHORT):
        canvas = add_contour(canvas, draw, _SHORT_DASHES, _SHORT_RETRIES)
    for _ in range(single_dashes):
        canvas = add_contour(canvas, draw, 1, _SINGLE_RETRIES)
    label = draw.randrange(2)
    for mark in (begin, end if label else distractor):
        np.maximum(canvas.image, disc(mark), out=canvas.image)
    return np.round(255 * canvas.image / canvas.image.max()).astype(np.uint8), label


def two_contours(draw: random.Random) -> tuple[Canvas, list[tuple[Pixel, Pixel]]]:
    """Draw the two long contours; return the canvas and the ends of each in random order, or no ends without room."""
    canvas = Canvas(np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE)))
    for edge in (np.s_[:_PADDING], np.s_[-_PADDING:], np.s_[:, :_PADDING], np.s_[:, -_PADDING:]):
        canvas.occupancy[edge] = 1
    border = np.ones((SIDE, SIDE))
    border[2 * _GAP : SIDE - 2 * _GAP, 2 * _GAP : SIDE - 2 * _GAP] = 0
    first = begin_contour(canvas, partial(free_start, border, draw), draw, _LONG_BRIGHTNESS)
    if first is None:
        return canvas, []
    second = begin_contour(canvas, lambda _: _second_start(first.tip, draw), draw, _LONG_BRIGHTNESS)
    if second is None:
        return canvas, []
    begins = first.tip, second.tip
    for _ in range(_DASHES - 1):
        for contour in (first, second):
            if not add_dash(canvas, contour, draw, _LONG_BRIGHTNESS):
                return canvas, []
    for contour in (first, second):
        np.maximum(canvas.occupancy, contour.last, out=canvas.occupancy)
    ends = list(zip(begins, (first.tip, second.tip), strict=True))
    draw.shuffle(ends)
    return canvas, ends


def add_contour(canvas: Canvas, draw: random.Random, dashes: int, retries: int) -> Canvas:
    """Return the canvas with one more contour of so many dashes, or unchanged if there is no room."""
    if (canvas.occupancy <= _FREE).mean() < _FULL:
        return canvas
    for _ in range(1 + retries):
        copy = canvas.copy()
        contour = begin_contour(copy, partial(free_start, copy.occupancy, draw), draw, _SHORT_BRIGHTNESS)
        if contour is not None and all(add_dash(copy, contour, draw, _SHORT_BRIGHTNESS) for _ in range(dashes - 1)):
            np.maximum(copy.occupancy, contour.last, out=copy.occupancy)
            return copy
    return canvas


def free_start(occupancy: Array, draw: random.Random, angle: float) -> Pixel | None:
    """Return a start for a dash of that angle that touches nothing; None if there is no room.

    There is also no room at angles where a dash that starts at an edge would lie wholly outside. OpenCV's dilation is
    undefined there, and the generator takes that for an image without free pixels. So nine in ten angles find no room.
    """
    reach = LENGTH + MARGIN
    around = np.pad(occupancy, reach, constant_values=-np.inf)
    places = _footprint(round(math.remainder(angle, 2 * math.pi), 9))
    overlap = np.max([around[down : down + SIDE, right : right + SIDE] for down, right in places], axis=0)
    free = np.argwhere(overlap <= _FREE)
    if overlap.min() < 0 or not len(free):
        return None
    row, column = free[draw.randrange(len(free))]
    return int(row), int(column)


@cache
def _footprint(angle: float) -> tuple[Pixel, ...]:
    """Return the pixels of a dash in a square of LENGTH + MARGIN around the middle, from its upper left corner: [K].

    The dash starts one pixel below and to the right of the middle, as in the generator.
    """
    middle = LENGTH + MARGIN
    _, room = stamps(angle)
    inside = room[REACH - middle - 1 : REACH + middle, REACH - middle - 1 : REACH + middle]
    return tuple((int(row), int(column)) for row, column in np.argwhere(inside >= 1))


def _second_start(first: Pixel, draw: random.Random) -> Pixel:
    """Return the start of the second long contour."""
    towards = math.radians(draw.randrange(360))
    return round(first[0] + _GAP * math.sin(towards)), round(first[1] + _GAP * math.cos(towards))


def begin_contour(
    canvas: Canvas, place: Callable[[float], Pixel | None], draw: random.Random, brightness: float
) -> Contour | None:
    """Start a contour with one dash, at the start that `place` returns for its angle; None if there is no room."""
    for _ in range(1 + _RETRIES):
        angle = math.radians(draw.randrange(-180, 180))
        tail = place(angle)
        if tail is None:
            return None
        head = step_to(tail, angle, LENGTH)
        pivot = step_to(head, angle + math.pi, LENGTH + MARGIN)
        if not (_inside(tail) and _inside(head) and _inside(pivot)):
            continue
        dash, room = stamp_dash(tail, angle)
        np.maximum(canvas.image, brightness * dash, out=canvas.image)
        return Contour(pivot, angle, room, tail)
    return None


def add_dash(canvas: Canvas, contour: Contour, draw: random.Random, brightness: float) -> bool:
    """Add a dash to the contour if there is room; small turns are more likely than sharp ones."""
    pivot = step_to(contour.pivot, contour.angle, LENGTH + 2 * MARGIN)
    heads, weights = [], []
    for row, column, angle in _ring():
        head = pivot[0] + row, pivot[1] + column
        if _inside(head):
            bend = abs(math.remainder(angle - contour.angle, 2 * math.pi))
            straight = math.cos(min(bend * _CONTINUITY, math.pi / 2)) ** 2
            heads.append((head, angle))
            weights.append(straight * (1 - _occupancy_near(canvas.occupancy, head)))
    if sum(weights) < 1e-4:
        return False
    for head, angle in draw.choices(heads, weights, k=1 + _RETRIES):
        dash, room = stamp_dash(head, angle + math.pi)
        if (canvas.occupancy + room).max() < 1.8:
            np.maximum(canvas.image, brightness * dash, out=canvas.image)
            np.maximum(canvas.occupancy, contour.last, out=canvas.occupancy)
            contour.pivot, contour.angle, contour.last, contour.tip = pivot, angle, room, head
            return True
    return False


def _occupancy_near(occupancy: Array, point: Pixel) -> float:
    """Return the largest occupancy at a point and its four neighbors."""
    row, column = point
    return max(
        float(occupancy[row + down, column + right])
        for down, right in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))
        if _inside((row + down, column + right))
    )


@cache
def _ring() -> tuple[tuple[int, int, float], ...]:
    """Return the ends of possible next dashes: pixels around the pivot, a pixel of arc apart, and their directions."""
    radius = LENGTH + MARGIN
    arcs = np.arange(0, 2 * math.pi, 1 / radius)
    pixels = {(math.floor(radius * math.sin(arc)), math.floor(radius * math.cos(arc))) for arc in arcs}
    return tuple((row, column, math.atan2(row, column)) for row, column in sorted(pixels))


def _inside(point: Pixel) -> bool:
    return 0 <= point[0] < SIDE and 0 <= point[1] < SIDE
