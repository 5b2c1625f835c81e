"""Decomposition of a space that cannot be enumerated into parts with additive costs.

A network's cost is the cost of a first network plus, for each part, the difference between its option and the first
one's. Parts are the topology of each segment of blocks, and the attention and the feed-forward layer of each block, or
of blocks that share an axis. Some topologies need one head dim in all blocks, refuse some blocks or replace
feed-forward layers. Then the options or costs of other parts depend on the topology. Each combination of such
topologies in the segments is a slice of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from math import gcd, prod

from nas.budget.implicit.block_costs import BlockCosts, ChangeCosts, CostFunction, add_costs
from nas.budget.implicit.knapsack import Cost
from search_spaces.architecture.block_segments import segments_of
from search_spaces.spaces.space import MAX_MEMBERS, Point, SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.topologies.registry import incompatibility_reason, resolve_topology

MAX_SLICES = 2_000
"""Largest number of slices; each is counted by itself."""

MAX_SHAPES = 20_000
"""Largest number of shapes, combinations of what all blocks share; each has slices of its own."""

MAX_OPTIONS = 10_000
"""Largest number of options of one part."""


@dataclass(frozen=True)
class Part:
    """A part of a network that is chosen independently.

    Attributes:
        axes: The axes of the part.
        options: Values on these axes -> cost relative to the slice's first network.
    """

    axes: tuple[str, ...]
    options: Mapping[tuple[object, ...], Cost]

    @cached_property
    def points(self) -> list[Point]:
        """Each option as a point."""
        return [dict(zip(self.axes, values, strict=True)) for values in self.options]  # type: ignore[arg-type]

    @cached_property
    def costs(self) -> list[Cost]:
        """The cost of each option."""
        return list(self.options.values())


@dataclass(frozen=True)
class Slice:
    """The members that result from choosing one option of each part.

    Attributes:
        shared_values: Their common values on the axes that all blocks share, which belong to no part.
        cost: The cost of the first network.
        kinds: Groups of parts with similar costs: topologies, feed-forward layers, attention.
    """

    shared_values: Point
    cost: Cost
    kinds: tuple[tuple[Part, ...], ...]

    @cached_property
    def parts(self) -> list[Part]:
        """All parts, in order."""
        return [part for kind in self.kinds for part in kind]

    def cost_of(self, point: Point) -> Cost | None:
        """Return the cost of a member; None for a point outside this slice."""
        if any(point.get(axis) != value for axis, value in self.shared_values.items()):
            return None
        costs = [part.options.get(tuple([point.get(axis) for axis in part.axes])) for part in self.parts]
        terms = [cost for cost in costs if cost is not None]
        return tuple(map(sum, zip(self.cost, *terms, strict=True))) if len(terms) == len(costs) else None


@dataclass(frozen=True)
class TopologyGroup:
    """Topologies of a segment under which its blocks have the same options with the same costs.

    Attributes:
        topologies: Their texts.
        head_dim: The head dim that all blocks must have; None if blocks may differ.
        refusals: Values that they refuse: (heads, head dim) or (hidden,).
    """

    topologies: tuple[str, ...]
    head_dim: int | None
    refusals: frozenset[tuple[int, ...]]


def slices_of(space: SearchSpace, costs: CostFunction) -> Iterator[Slice]:
    """Yield every slice that has a member.

    Raises:
        UserError: There are too many.
    """
    start = space.point(space.first) or {}
    start = {axis: start[axis] for axes in space.segments.values() for axis in axes}
    shapes = list(islice(space.shapes(), MAX_SHAPES + 1))
    if len(shapes) > MAX_SHAPES:
        raise UserError(
            "too-large",
            f"space {space.name!r} has more than {MAX_MEMBERS:,} architectures, too many to list. More than "
            f"{MAX_SHAPES:,} of them differ in values that all blocks share. Give fewer values with --axis.",
            space=space.name,
            most=MAX_SHAPES,
        )
    for shape in shapes:
        layout = _Layout(space, shape, start)
        yield from layout.slices(costs)


class _Layout:
    """The layout of the members of one shape: which axes apply to which blocks."""

    def __init__(self, space: SearchSpace, shared_values: Point, start: Point) -> None:
        self.space, self.shared_values, self.start = space, shared_values, start
        self.base = space.candidate(shared_values | start).architecture
        self.depth = self.base.depth
        self.segments = self._segments()
        self.tables: dict[tuple[object, str], BlockCosts] = {}

    def slices(self, costs: CostFunction) -> Iterator[Slice]:
        """Yield a slice for each combination of topology groups of the segments."""
        if not self.space.segments:
            if incompatibility_reason(self.base) is None:
                yield Slice(self.shared_values, costs(self.base), ())
            return
        groups_of_segments = [self._groups(segment) for segment in range(len(self.segments))]
        if prod(map(len, groups_of_segments)) > MAX_SLICES:
            ways = prod(map(len, groups_of_segments))
            raise UserError(
                "too-large",
                f"space {self.space.name!r} has {ways:,} assignments of topologies that need one head dim, at most "
                f"{MAX_SLICES:,} are allowed. Leave such topologies out with --axis.",
                space=self.space.name,
                ways=ways,
                most=MAX_SLICES,
            )
        for groups in product(*groups_of_segments):
            slice_ = self._slice(groups, costs)
            if slice_ is not None:
                yield slice_

    def _values(self, field: str, block: int) -> Sequence[int]:
        """Return the possible values of a field in a block."""
        axis = self._axis(field, block)
        return self.space.axes[axis] if axis else (self.base.by_block(field)[block],)  # type: ignore[return-value]

    def _axis(self, field: str, block: int) -> str | None:
        axes = self.space.segments.get(field)
        return axes[block * len(axes) // self.depth] if axes else None

    def _segments(self) -> list[tuple[Sequence[object], range]]:
        """Return for each segment of blocks its possible topologies and its blocks."""
        axes = self.space.segments.get("topology")
        if not axes:
            return [((text,), blocks) for text, blocks in segments_of(self.base.topology, self.depth)]
        length = self.depth // len(axes)
        return [(self.space.axes[axis], range(r * length, (r + 1) * length)) for r, axis in enumerate(axes)]

    def _groups(self, segment: int) -> list[TopologyGroup]:
        """Group the topologies of a segment by the options that they leave to its blocks."""
        topologies, blocks = self.segments[segment]
        common = set.intersection(*(set(self._values("head_dim", block)) for block in blocks))
        texts_of: dict[tuple[str, int | None, frozenset[tuple[int, ...]]], list[str]] = {}
        for text in map(str, topologies):
            topology, options = resolve_topology(text)
            in_head_space = topology.input_mode_of(options) == "heads"
            # Under these, heads or hidden features of a block cost differently from all other topologies.
            by_itself = text if in_head_space or topology.replaces_feed_forward else ""
            refusals = self._refusals(text, blocks)
            for head_dim in sorted(common) if in_head_space else [None]:
                texts_of.setdefault((by_itself, head_dim, refusals), []).append(text)
        return [TopologyGroup(tuple(texts), head_dim, refusals) for (_, head_dim, refusals), texts in texts_of.items()]

    def _refusals(self, text: str, blocks: range) -> frozenset[tuple[int, ...]]:
        alike = self.base.at_block(0).with_fields({"topology": text})
        shapes = {pair for b in blocks for pair in product(self._values("heads", b), self._values("head_dim", b))}
        hidden = {value for b in blocks for value in self._values("hidden", b)}
        variants = {shape: alike.with_fields({"heads": shape[0], "head_dim": shape[1]}) for shape in shapes}
        if all(incompatibility_reason(variant) is not None for variant in variants.values()):
            return frozenset(shapes)
        buildable = next(variant for variant in variants.values() if incompatibility_reason(variant) is None)
        features = {(value,): buildable.with_fields({"hidden": value}) for value in hidden}
        all_variants = (*variants.items(), *features.items())
        return frozenset(values for values, variant in all_variants if incompatibility_reason(variant) is not None)

    def _slice(self, groups: Sequence[TopologyGroup], costs: CostFunction) -> Slice | None:
        """Return the members whose segments have topologies of these groups; None if there are none."""
        group_of = {block: group for segment, group in enumerate(groups) for block in self.segments[segment][1]}
        attention = list(self._parts(("heads", "head_dim"), group_of))
        feed_forward = list(self._parts(("hidden",), group_of))
        if not all(options for _, _, options in (*attention, *feed_forward)):
            return None
        point = self.shared_values | self.start
        for axes, _, options in (*attention, *feed_forward):
            current = tuple(point[axis] for axis in axes)
            point |= dict(zip(axes, current if current in options else options[0], strict=True))
        segments = self.space.segments.get("topology", ())
        point |= {axis: group.topologies[0] for axis, group in zip(segments, groups, strict=bool(segments))}
        first = self.space.candidate(point).architecture
        if incompatibility_reason(first) is not None:  # it refuses values that no axis changes
            return None
        changes = ChangeCosts(costs, first, costs(first), self.tables)
        topologies = [
            Part((axis,), {(text,): changes.topology(self.space, point, axis, text) for text in group.topologies})
            for axis, group in zip(segments, groups, strict=bool(segments))
        ]
        layers = [
            tuple(
                Part(axes, {values: self._cost(changes, axes, blocks, values, group_of) for values in options})
                for axes, blocks, options in parts
            )
            for parts in (feed_forward, attention)
        ]
        return Slice(self.shared_values, changes.cost, (tuple(topologies), *layers))

    def _parts(
        self, fields: tuple[str, ...], group_of: Mapping[int, TopologyGroup]
    ) -> Iterator[tuple[tuple[str, ...], range, list[tuple[int, ...]]]]:
        """Yield for each part its axes, its blocks, and its possible values.

        Axes of heads and of head dims form one part if they apply to the same blocks.
        """
        numbers = [len(self.space.segments[field]) for field in fields if field in self.space.segments]
        for number in range(gcd(*numbers) if numbers else 0):
            length = self.depth // gcd(*numbers)
            blocks = range(number * length, (number + 1) * length)
            axes = tuple(dict.fromkeys(a for field in fields for b in blocks if (a := self._axis(field, b))))
            if prod(len(self.space.axes[axis]) for axis in axes) > MAX_OPTIONS:
                message = f"axes {', '.join(axes)} of space {self.space.name!r} have too many combinations of values."
                raise UserError("too-large", message, space=self.space.name, axes=axes)
            combinations = product(*(self.space.axes[axis] for axis in axes))
            yield axes, blocks, [v for v in combinations if self._fits(fields, axes, v, blocks, group_of)]  # type: ignore[misc]

    def _in_block(
        self, fields: tuple[str, ...], axes: tuple[str, ...], values: Sequence[object], b: int
    ) -> tuple[int, ...]:
        """Return the fields of a block for these values of the axes."""
        value_of = dict(zip(axes, values, strict=True))
        return tuple(
            value_of[axis] if (axis := self._axis(field, b)) else self.base.by_block(field)[b]  # type: ignore[misc]
            for field in fields
        )

    def _fits(
        self, fields: tuple[str, ...], axes: tuple[str, ...], values: Sequence[object], blocks: Iterable[int],
        group_of: Mapping[int, TopologyGroup],
    ) -> bool:  # fmt: skip
        for block in blocks:
            block_values, group = self._in_block(fields, axes, values, block), group_of[block]
            if block_values in group.refusals or (
                "head_dim" in fields and group.head_dim not in (None, block_values[-1])
            ):
                return False
        return True

    def _cost(
        self, changes: "ChangeCosts", axes: tuple[str, ...], blocks: range, values: tuple[int, ...],
        group_of: Mapping[int, TopologyGroup],
    ) -> Cost:  # fmt: skip
        """Return the cost of a part's blocks relative to the first network."""
        fields = ("hidden",) if axes[0].startswith("hidden") else ("heads", "head_dim")
        total = (0,) * len(changes.cost)
        for block in blocks:
            block_values = self._in_block(fields, axes, values, block)
            total = add_costs(total, changes.block(block, group_of[block], fields, block_values))
        return total
