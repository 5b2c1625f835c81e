"""A space whose members cannot be listed as parts whose costs add up.

What a network costs is what a first one costs, and what each option of each part costs more or less than the first
one's. Parts are the topology of each run of blocks, the attention and the feed-forward layer of each block or of those
that an axis holds together. Where a topology takes one head dim in all its blocks, refuses some of them or stands in
the place of feed-forward layers, the options of other parts or what they cost depend on it: each way of giving runs
such topologies is a slice of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from math import gcd, prod

from nas.budget.implicit.block_costs import ChangeCosts, Costs, Table, plus
from nas.budget.implicit.knapsack import Cost
from search_spaces.architecture.block_segments import runs_of
from search_spaces.spaces.space import MAX_MEMBERS, Point, SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.topologies.registry import load, refusal

MOST_SLICES = 2_000
"""The most slices of spaces whose blocks differ; each is counted by itself."""

MOST_SHAPES = 20_000
"""The most combinations of what all blocks have alike, each of which has slices of its own."""

MOST_OPTIONS = 10_000
"""The most options of one part."""


@dataclass(frozen=True)
class Part:
    """What is chosen by itself.

    Attributes:
        axes: The axes that it takes values on.
        options: Values on these axes -> what the network costs more than the slice's first one.
    """

    axes: tuple[str, ...]
    options: Mapping[tuple[object, ...], Cost]

    @cached_property
    def points(self) -> list[Point]:
        """Each option as a point."""
        return [dict(zip(self.axes, values, strict=True)) for values in self.options]  # type: ignore[arg-type]

    @cached_property
    def costs(self) -> list[Cost]:
        """What each option costs."""
        return list(self.options.values())


@dataclass(frozen=True)
class Slice:
    """The members that one option of each part makes.

    Attributes:
        shape: What all of them have alike, of the axes that are no part's.
        cost: What the first one costs.
        kinds: Parts in groups that cost alike: topologies, feed-forward layers, attention.
    """

    shape: Point
    cost: Cost
    kinds: tuple[tuple[Part, ...], ...]

    @cached_property
    def parts(self) -> list[Part]:
        """All of them, in order."""
        return [part for kind in self.kinds for part in kind]

    def cost_of(self, point: Point) -> Cost | None:
        """What a member costs; None of a point that is not in this slice."""
        if any(point.get(axis) != value for axis, value in self.shape.items()):
            return None
        costs = [part.options.get(tuple([point.get(axis) for axis in part.axes])) for part in self.parts]
        known = [cost for cost in costs if cost is not None]
        return tuple(map(sum, zip(self.cost, *known, strict=True))) if len(known) == len(costs) else None


@dataclass(frozen=True)
class Way:
    """Topologies of one run of blocks under which the blocks' options are the same, and cost the same.

    Attributes:
        topologies: Their texts.
        head_dim: The one head dim that their blocks have; None where blocks may differ.
        refused: Heads and head dims, and hidden features, that they do not wire.
    """

    topologies: tuple[str, ...]
    head_dim: int | None
    refused: frozenset[tuple[int, ...]]


def slices_of(space: SearchSpace, costs: Costs) -> Iterator[Slice]:
    """Every slice that has a member.

    Raises:
        UserError: There are too many.
    """
    start = space.point(space.first) or {}
    start = {axis: start[axis] for axes in space.runs.values() for axis in axes}
    shapes = list(islice(space.shapes(), MOST_SHAPES + 1))
    if len(shapes) > MOST_SHAPES:
        raise UserError(
            "too-large",
            f"space {space.name!r} has more than {MAX_MEMBERS:,} architectures, which are not listed, and more than "
            f"{MOST_SHAPES:,} that differ in what all their blocks have alike. Give fewer values with --axis.",
            space=space.name,
            most=MOST_SHAPES,
        )
    for shape in shapes:
        laid_out = _Layout(space, shape, start)
        yield from laid_out.slices(costs)


class _Layout:
    """Members that have one shape: where axes of runs stand among its blocks."""

    def __init__(self, space: SearchSpace, shape: Point, start: Point) -> None:
        self.space, self.shape, self.start = space, shape, start
        self.base = space.candidate(shape | start).architecture
        self.depth = self.base.depth
        self.runs = self._runs()
        self.tables: dict[tuple[object, str], Table] = {}

    def slices(self, costs: Costs) -> Iterator[Slice]:
        """A slice for each way of wiring the runs."""
        if not self.space.runs:
            if refusal(self.base) is None:
                yield Slice(self.shape, costs(self.base), ())
            return
        ways = [self._ways(run) for run in range(len(self.runs))]
        if prod(map(len, ways)) > MOST_SLICES:
            raise UserError(
                "too-large",
                f"space {self.space.name!r} has {prod(map(len, ways)):,} ways to give runs topologies that need one "
                f"head dim, of which at most {MOST_SLICES:,} are counted. Leave such topologies out with --axis.",
                space=self.space.name,
                ways=prod(map(len, ways)),
                most=MOST_SLICES,
            )
        for assigned in product(*ways):
            slice_ = self._slice(assigned, costs)
            if slice_ is not None:
                yield slice_

    def _values(self, field: str, block: int) -> Sequence[int]:
        """What a field may be in a block."""
        axis = self._axis(field, block)
        return self.space.axes[axis] if axis else (self.base.by_block(field)[block],)  # type: ignore[return-value]

    def _axis(self, field: str, block: int) -> str | None:
        axes = self.space.runs.get(field)
        return axes[block * len(axes) // self.depth] if axes else None

    def _runs(self) -> list[tuple[Sequence[object], range]]:
        """What may wire each run of blocks, and which blocks these are."""
        axes = self.space.runs.get("topology")
        if not axes:
            return [((text,), blocks) for text, blocks in runs_of(self.base.topology, self.depth)]
        length = self.depth // len(axes)
        return [(self.space.axes[axis], range(r * length, (r + 1) * length)) for r, axis in enumerate(axes)]

    def _ways(self, run: int) -> list[Way]:
        """The topologies of a run, those together under which blocks have the same options."""
        topologies, blocks = self.runs[run]
        shared = set.intersection(*(set(self._values("head_dim", block)) for block in blocks))
        found: dict[tuple[str, int | None, frozenset[tuple[int, ...]]], list[str]] = {}
        for text in map(str, topologies):
            topology, options = load(text)
            in_head_space = topology.input_mode_of(options) == "heads"
            # Under these a block's heads or hidden features cost what they cost under no other.
            by_itself = text if in_head_space or topology.replaces_feed_forward else ""
            refused = self._refused(text, blocks)
            for head_dim in sorted(shared) if in_head_space else [None]:
                found.setdefault((by_itself, head_dim, refused), []).append(text)
        return [Way(tuple(texts), head_dim, refused) for (_, head_dim, refused), texts in found.items()]

    def _refused(self, text: str, blocks: range) -> frozenset[tuple[int, ...]]:
        alike = self.base.at(0).with_fields({"topology": text})
        shapes = {pair for b in blocks for pair in product(self._values("heads", b), self._values("head_dim", b))}
        hidden = {value for b in blocks for value in self._values("hidden", b)}
        asked = {shape: alike.with_fields({"heads": shape[0], "head_dim": shape[1]}) for shape in shapes}
        if all(refusal(one) is not None for one in asked.values()):
            return frozenset(shapes)
        wired = next(one for one in asked.values() if refusal(one) is None)
        features = {(value,): wired.with_fields({"hidden": value}) for value in hidden}
        both = (*asked.items(), *features.items())
        return frozenset(values for values, one in both if refusal(one) is not None)

    def _slice(self, assigned: Sequence[Way], costs: Costs) -> Slice | None:
        """The members whose runs are wired in these ways; None where there is none."""
        way_of = {block: way for run, way in enumerate(assigned) for block in self.runs[run][1]}
        attention = list(self._parts(("heads", "head_dim"), way_of))
        feed_forward = list(self._parts(("hidden",), way_of))
        if not all(options for _, _, options in (*attention, *feed_forward)):
            return None
        place = self.shape | self.start
        for axes, _, options in (*attention, *feed_forward):
            own = tuple(place[axis] for axis in axes)
            place |= dict(zip(axes, own if own in options else options[0], strict=True))
        runs = self.space.runs.get("topology", ())
        place |= {axis: way.topologies[0] for axis, way in zip(runs, assigned, strict=bool(runs))}
        first = self.space.candidate(place).architecture
        if refusal(first) is not None:  # what no axis changes cannot be wired
            return None
        measured = ChangeCosts(costs, first, costs(first), self.tables)
        topologies = [
            Part((axis,), {(text,): measured.topology(self.space, place, axis, text) for text in way.topologies})
            for axis, way in zip(runs, assigned, strict=bool(runs))
        ]
        layers = [
            tuple(
                Part(axes, {values: self._cost(measured, axes, blocks, values, way_of) for values in options})
                for axes, blocks, options in parts
            )
            for parts in (feed_forward, attention)
        ]
        return Slice(self.shape, measured.cost, (tuple(topologies), *layers))

    def _parts(
        self, fields: tuple[str, ...], way_of: Mapping[int, Way]
    ) -> Iterator[tuple[tuple[str, ...], range, list[tuple[int, ...]]]]:
        """The axes of parts of blocks, the blocks that each stands for, and the values that it may have.

        Axes of heads and of head dims are one part where they stand for the same blocks.
        """
        numbers = [len(self.space.runs[field]) for field in fields if field in self.space.runs]
        for number in range(gcd(*numbers) if numbers else 0):
            length = self.depth // gcd(*numbers)
            blocks = range(number * length, (number + 1) * length)
            axes = tuple(dict.fromkeys(a for field in fields for b in blocks if (a := self._axis(field, b))))
            if prod(len(self.space.axes[axis]) for axis in axes) > MOST_OPTIONS:
                message = f"axes {', '.join(axes)} of space {self.space.name!r} go together and have too many values."
                raise UserError("too-large", message, space=self.space.name, axes=axes)
            combined = product(*(self.space.axes[axis] for axis in axes))
            yield axes, blocks, [v for v in combined if self._fits(fields, axes, v, blocks, way_of)]  # type: ignore[misc]

    def _in_block(
        self, fields: tuple[str, ...], axes: tuple[str, ...], values: Sequence[object], b: int
    ) -> tuple[int, ...]:
        """What the fields are in a block where the axes have these values."""
        named = dict(zip(axes, values, strict=True))
        return tuple(
            named[axis] if (axis := self._axis(field, b)) else self.base.by_block(field)[b]  # type: ignore[misc]
            for field in fields
        )

    def _fits(
        self, fields: tuple[str, ...], axes: tuple[str, ...], values: Sequence[object], blocks: Iterable[int],
        way_of: Mapping[int, Way],
    ) -> bool:  # fmt: skip
        for block in blocks:
            inside, way = self._in_block(fields, axes, values, block), way_of[block]
            if inside in way.refused or ("head_dim" in fields and way.head_dim not in (None, inside[-1])):
                return False
        return True

    def _cost(
        self, measured: "ChangeCosts", axes: tuple[str, ...], blocks: range, values: tuple[int, ...],
        way_of: Mapping[int, Way],
    ) -> Cost:  # fmt: skip
        """What the blocks of a part cost more than in the first network."""
        fields = ("hidden",) if axes[0].startswith("hidden") else ("heads", "head_dim")
        total = (0,) * len(measured.cost)
        for block in blocks:
            there = self._in_block(fields, axes, values, block)
            total = plus(total, measured.block(block, way_of[block], fields, there))
        return total
