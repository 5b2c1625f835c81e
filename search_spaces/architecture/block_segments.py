"""Topologies of segments of blocks, as text: "dca(k=2)/resnet", "resnet[0:4]+dca(k=2)[4:12]"."""

import re
from collections.abc import Sequence
from functools import lru_cache

from search_spaces.architecture.canonical_text import without_defaults
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Axes, Spec

Segment = tuple[str, range]
"""A topology's text and its blocks, counted from 0."""

_STEADY = ("resnet", "none")  # several segments of these equal one, since their input and output are the stream itself
_RANGE = re.compile(r"(.*)\[\s*(\d*)\s*:\s*(\d*)\s*\]\s*", re.DOTALL)
_BETWEEN = re.compile(r"(?<=\])\s*\+")


def has_one_topology(text: str) -> bool:
    """Return whether one topology connects all blocks."""
    return "/" not in text and "[" not in text


def topologies_of(text: str) -> tuple[str, ...]:
    """Return the topologies of all segments, in order. Raises UserError for text that cannot be parsed."""
    if "[" not in text:
        return tuple(str(without_defaults(Spec.parse(part))) for part in text.split("/"))
    return tuple(str(without_defaults(Spec.parse(_range(part, text)[0]))) for part in _BETWEEN.split(text))


def normalize_topologies(text: str) -> str:
    """Return the text without spaces and default options, for any depth. Raises UserError as `topologies_of` does."""
    topologies = topologies_of(text)
    if "[" not in text:
        return "/".join(topologies)
    ends = [_range(part, text)[1:] for part in _BETWEEN.split(text)]
    return "+".join(f"{topology}[{first}:{end}]" for topology, (first, end) in zip(topologies, ends, strict=True))


def normalize_axes(axes: Axes) -> Axes:
    """Normalize the topologies of a space's axes. Raises UserError as `normalize_topologies` does."""
    return {
        axis: tuple(normalize_topologies(str(value)) for value in values)
        if axis.partition(":")[0] == "topology"
        else values
        for axis, values in axes.items()
    }


@lru_cache(maxsize=4096)  # called for each block
def segments_of(text: str, depth: int) -> tuple[Segment, ...]:
    """Return the segments for this depth: equal ones, or the given ranges, whose ends may be omitted as in Python.

    Raises:
        UserError: The text cannot be parsed, segments do not divide the depth, or ranges do not cover all blocks once.
    """
    topologies = topologies_of(text)
    if "[" not in text:
        check_divides("topology", topologies, depth)
        length = depth // len(topologies)
        return tuple((topology, range(r * length, (r + 1) * length)) for r, topology in enumerate(topologies))
    segments: list[Segment] = []
    for topology, part in zip(topologies, _BETWEEN.split(text), strict=True):
        start = segments[-1][1].stop if segments else 0
        segments.append((topology, _blocks(topology, _range(part, text), text, start, depth)))
    if segments[-1][1].stop != depth:
        end, open_end = segments[-1][1].stop, f"{topologies[-1]}[{segments[-1][1].start}:]"
        raise UserError(
            "mismatch",
            f"ranges of {text!r} must cover all blocks, got {end} of depth={depth}. "
            f"Write {open_end} for the remaining blocks.",
            option="topology",
            value=text,
            end=end,
            depth=depth,
            instead=open_end,
        )
    return tuple(segments)


def _blocks(topology: str, ends: tuple[str, str, str], text: str, start: int, depth: int) -> range:
    """Return the blocks of a range that follows `start` blocks. Raises UserError if it is empty or does not fit."""
    _, first, end = ends
    segment, blocks = f"{topology}[{first}:{end}]", range(int(first or 0), int(end or depth))
    if blocks.stop > depth:
        message = (
            f"ranges of {text!r} must lie in depth={depth}, got {segment}. Use depth={blocks.stop} or other ranges."
        )
        raise UserError("out-of-range", message, option="topology", value=segment, end=blocks.stop, depth=depth)
    if blocks.start != start or blocks.stop <= start:
        instead = f"{topology}[{start}:...]" if start < depth else None
        remedy = f"Write {instead}." if instead else "Remove it, or increase depth."
        message = (
            f"each range of {text!r} must start where the previous one ends and contain a block, got {segment} after "
            f"{start} blocks. {remedy}"
        )
        raise UserError("conflict", message, option="topology", value=segment, start=start, instead=instead)
    return blocks


def canonical(text: str, depth: int) -> str:
    """Return the one text of all topologies that are equal at this depth. Raises UserError as `segments_of` does."""
    segments: list[Segment] = []
    for topology, blocks in segments_of(text, depth):
        if segments and topology in _STEADY and segments[-1][0] == topology:
            blocks = range(segments.pop()[1].start, blocks.stop)
        segments.append((topology, blocks))
    if len({len(blocks) for _, blocks in segments}) == 1:
        return "/".join(topology for topology, _ in segments)
    return "+".join(f"{topology}[{blocks.start}:{blocks.stop}]" for topology, blocks in segments)


def check_divides(name: str, values: Sequence[object], depth: int) -> None:
    """Raise UserError if the values do not divide the depth into equal segments."""
    if depth % len(values):
        raise UserError(
            "mismatch",
            f"the number of runs of blocks must divide the depth, got {name} {'/'.join(map(str, values))} "
            f"({len(values)} runs) and depth={depth}. Give another number of runs.",
            option=name,
            value=tuple(values),
            depth=depth,
        )


def _range(part: str, text: str) -> tuple[str, str, str]:
    match = _RANGE.fullmatch(part)
    if match is None:
        message = f"ranges of blocks must be TOPOLOGY[FIRST:END]+TOPOLOGY[FIRST:END], got {part!r} in {text!r}."
        raise UserError("bad-syntax", message, option="topology", value=part, text=text)
    return match[1], match[2], match[3]
