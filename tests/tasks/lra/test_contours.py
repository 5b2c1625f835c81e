"""Generated images of contours."""

import math
import pickle
import random
from functools import partial
from itertools import count, islice

import numpy as np
import pytest

from tasks.lra import blocks, contours, stamps


@pytest.fixture(scope="module")
def images() -> list[tuple[np.ndarray, int]]:
    return contours.make_block(seed=0, size=6, number=0)


@pytest.fixture(scope="module")
def long_contours() -> list[tuple[contours.Canvas, list[tuple[stamps.Pixel, stamps.Pixel]]]]:
    """Eight canvases with both long contours, and the contours' ends."""
    draw = random.Random(5)
    pairs = (contours.two_contours(draw) for _ in count())
    return list(islice((pair for pair in pairs if pair[1]), 8))


def test_images_are_grey_bytes_with_both_answers(images: list[tuple[np.ndarray, int]]) -> None:
    assert all(image.shape == (32, 32) and image.dtype == np.uint8 and image.max() == 255 for image, _ in images)
    assert {label for _, label in images} == {0, 1}
    assert all(0.05 < (image > 40).mean() < 0.3 for image, _ in images)


def test_images_do_not_depend_on_the_order_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contours, "_BLOCK", 1)
    monkeypatch.setattr(blocks, "_cores", lambda: 1)
    second, first = (pickle.loads(pickle.dumps(partial(contours.make_block, 1, 1)))(number) for number in (1, 0))
    images, labels = contours.generate(2, seed=1)
    for image, label, (expected, answer) in zip(images, labels, [*first, *second], strict=True):
        assert np.array_equal(image, expected)
        assert label == answer
    assert not np.array_equal(images[0], images[1])


def test_long_contours_begin_seven_pixels_apart_and_are_connected(
    long_contours: list[tuple[contours.Canvas, list[tuple[stamps.Pixel, stamps.Pixel]]]],
) -> None:
    for _, pairs in long_contours:
        begins, ends = zip(*pairs, strict=True)
        assert math.dist(*begins) == pytest.approx(7, abs=1)
        assert any(all(14 <= side < 18 for side in begin) for begin in begins)
        # A dash and its gap are 4 pixels long, and contours may curl.
        assert all(math.dist(begin, end) <= 4 * 14 * 1.2 for begin, end in pairs)
        assert all(0 <= side < 32 for end in ends for side in end)


def test_dashes_turn_with_the_published_weights() -> None:
    draw = random.Random(0)
    turns = []
    for _ in range(300):
        canvas = contours.Canvas(np.zeros((32, 32)), np.zeros((32, 32)))
        contour = contours.begin_contour(canvas, lambda _: (15, 15), draw, 1.0)
        assert contour is not None
        before = contour.angle
        assert contours.add_dash(canvas, contour, draw, 1.0)
        turns.append(abs(math.remainder(contour.angle - before, 2 * math.pi)))
    assert max(turns) <= math.pi / 2
    # Directions are weighted by cos^2, whose mean turn is pi / 4 - 1 / pi.
    assert sum(turns) / len(turns) == pytest.approx(math.pi / 4 - 1 / math.pi, abs=0.05)


def test_dashes_do_not_cross_occupied_pixels() -> None:
    canvas = contours.Canvas(np.zeros((32, 32)), np.ones((32, 32)))
    free = contours.Contour((15, 15), 0.0, np.zeros((32, 32)), (15, 15))
    assert not contours.add_dash(canvas, free, random.Random(0), 1.0)
    assert canvas.image.max() == 0
    assert contours.add_contour(canvas, random.Random(0), 4, 4) is canvas


def test_no_contour_begins_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    canvas = contours.Canvas(np.zeros((32, 32)), np.zeros((32, 32)))
    assert contours.begin_contour(canvas, lambda _: None, random.Random(0), 1.0) is None
    assert contours.begin_contour(canvas, lambda _: (40, 40), random.Random(0), 1.0) is None
    assert canvas.image.max() == 0
    monkeypatch.setattr(contours, "free_start", lambda *_: None)
    assert contours.two_contours(random.Random(0))[1] == []


def test_the_answer_tells_whether_both_marks_are_on_one_contour(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [((5, 5), (5, 26)), ((26, 5), (26, 26))]
    monkeypatch.setattr(contours, "add_contour", lambda canvas, *_: canvas)

    def two(draw: random.Random) -> tuple[contours.Canvas, list[tuple[stamps.Pixel, stamps.Pixel]]]:
        return contours.Canvas(np.zeros((32, 32)), np.zeros((32, 32))), ends

    monkeypatch.setattr(contours, "two_contours", two)
    draw, answers = random.Random(0), set()
    for _ in range(20):
        image, label = contours.example(draw)
        marks = {end for pair in ends for end in pair if image[end] == 255}
        assert marks == ({(5, 5), (5, 26)} if label else {(5, 5), (26, 26)})
        answers.add(label)
    assert answers == {0, 1}


def naive_place(canvas: np.ndarray, room: np.ndarray, draw: random.Random) -> tuple[int, int] | None:
    """The published search for free pixels, pixel by pixel."""
    under = [(row - 3, column - 3) for row in range(7) for column in range(7) if room[row, column] == 1]
    free = []
    for row in range(32):
        for column in range(32):
            places = [(row + down, column + right) for down, right in under]
            inside = [place for place in places if all(0 <= side < 32 for side in place)]
            if not inside:
                return None
            if max(canvas[place] for place in inside) <= 0.3:
                free.append((row, column))
    return free[draw.randrange(len(free))] if free else None


def test_a_dash_begins_where_its_footprint_is_free() -> None:
    places = []
    for degrees in range(-180, 180, 3):
        canvas = np.random.default_rng(degrees % 360).random((32, 32)) < 0.3
        angle = round(math.remainder(math.radians(degrees), 2 * math.pi), 9)
        expected = naive_place(canvas.astype(float), stamps.stamps(angle)[1], random.Random(degrees))
        assert contours.free_start(canvas.astype(float), random.Random(degrees), angle) == expected
        places.append(expected)
    assert 0 < sum(place is not None for place in places) < 20  # of 120 angles; most find none, as published


def test_brightness_matches_the_published_generator(images: list[tuple[np.ndarray, int]]) -> None:
    """0.079 with these parameters; single dashes give 0.269 or more."""
    assert np.mean([image.mean() / 255 for image, _ in images]) == pytest.approx(0.079, abs=0.006)
    bright = [image.mean() / 255 for image, _ in contours.make_block(0, 1, 0, single_dashes=True)]
    assert np.mean(bright) == pytest.approx(0.275, abs=0.03)


def test_about_a_quarter_of_the_short_contours_find_room(
    long_contours: list[tuple[contours.Canvas, list[tuple[stamps.Pixel, stamps.Pixel]]]],
) -> None:
    draw, contours_in_room = random.Random(1), 0
    for canvas, _ in long_contours:
        for _ in range(contours.SHORT):
            before, canvas = canvas, contours.add_contour(canvas, draw, 4, 4)  # a copy if there is room
            contours_in_room += canvas is not before
    assert 0.1 < contours_in_room / 40 < 0.4
