"""A color and a marker for each topology, the same in every plot and report."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from search_spaces.architecture.block_segments import has_one_topology

COLORS = (
    *("#ff5c00", "#d60014", "#eb668f", "#528fff", "#8f00ff", "#00707a", "#47a314", "#997a5c"),
    *("#477000", "#9970cc", "#f53df5", "#ad3d5c", "#7099b8", "#5c5ccc", "#ad1fad", "#e0008f"),
)
"""Sixteen colors, as far apart as possible, also for readers without red or green cones.

Each has a contrast of at least 3 on white and on a dark page. Chosen by greedy exchange in OKLab, with the simulation
of Machado, Oliveira and Fernandes (2009).
"""


class Marker(NamedTuple):
    """A marker: its Matplotlib code, and an SVG path about the origin with one unit to each side."""

    code: str
    path: str


_MARKERS = {
    "resnet": Marker("o", "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0Z"),
    "ancre": Marker("P", "M-.4,-1H.4V-.4H1V.4H.4V1H-.4V.4H-1V-.4H-.4Z"),
    "dca": Marker("s", "M-.85,-.85H.85V.85H-.85Z"),
    "denseformer": Marker("D", "M0,-1.15L1.15,0L0,1.15L-1.15,0Z"),
    "grn-v1": Marker("^", "M0,-1.1L1.1,.85H-1.1Z"),
    "grn-v2": Marker("v", "M0,1.1L1.1,-.85H-1.1Z"),
    "grn-v3": Marker("<", "M-1.1,0L.85,1.1V-1.1Z"),
    "hyper": Marker("*", "M0,-1.3L.33,-.4L1.24,-.4L.53,.15L.76,1.05L0,.5L-.76,1.05L-.53,.15L-1.24,-.4L-.33,-.4Z"),
    "rmt": Marker("h", "M0,-1.1L.95,-.55V.55L0,1.1L-.95,.55V-.55Z"),
    "none": Marker("X", "M-1,-.5L-.5,-1L0,-.5L.5,-1L1,-.5L.5,0L1,.5L.5,1L0,.5L-.5,1L-1,.5L-.5,0Z"),
}
"""Topology without its options -> its marker."""

_OTHERS = (
    Marker(">", "M1.1,0L-.85,1.1V-1.1Z"),
    Marker("p", "M0,-1.1L1.05,-.34L.65,.89H-.65L-1.05,-.34Z"),
    Marker("d", "M0,-1.25L.7,0L0,1.25L-.7,0Z"),
    Marker("8", "M-.42,-1H.42L1,-.42V.42L.42,1H-.42L-1,.42V-.42Z"),
)


class TopologyStyle(NamedTuple):
    """The color and marker of a topology."""

    color: str
    marker: Marker


_USUAL = (
    *("resnet", "ancre", "ancre(temperature=0.1)", "dca(k=1)", "dca(k=2)", "dca(k=4)"),
    *("denseformer", "grn-v1", "grn-v2", "grn-v3", "hyper(streams=2)", "hyper", "rmt(keys=16)", "rmt", "none"),
)
"""Topologies of the space `joint`, and `none`, in the order of COLORS."""


_LESS_USUAL = (
    *("attnres", "mhc", "dca", "frac", "value-residual", "layerscale", "rezero", "deepnorm", "laurel"),
    *("highway", "depth-lstm", "attnres-delta", "muddformer", "mhc(streams=2)", "aggregation", "laurel-rw", "svformer"),
)
"""The other topologies of this project, which reuse the colors in turn; all others get a look by their name."""


def _family(topology: str) -> str:
    return topology.partition("(")[0] if has_one_topology(topology) else topology


def _own_looks() -> Iterator[tuple[str, TopologyStyle]]:
    for name, color in zip(_USUAL, COLORS, strict=False):
        yield name, TopologyStyle(color, _MARKERS[_family(name)])
    for number, name in enumerate(_LESS_USUAL):
        marker = _MARKERS.get(_family(name), _OTHERS[(number + number // len(COLORS)) % len(_OTHERS)])
        yield name, TopologyStyle(COLORS[(len(_USUAL) + number) % len(COLORS)], marker)


_LOOKS = dict(_own_looks())


def topology_styles(topologies: Iterable[str]) -> Mapping[str, TopologyStyle]:
    """Return the look of each topology of a plot; looks are distinct while unused ones are left (about sixty).

    Topologies of this project always look the same. For others the name suggests a look; if it is in use, the next free
    one is taken.
    """
    names = set(topologies)
    looks_by_topology = {name: _LOOKS[name] for name in sorted(names & _LOOKS.keys())}
    for name in sorted(names - _LOOKS.keys()):
        used_looks = {*looks_by_topology.values(), *_LOOKS.values()}
        looks_by_topology[name] = next(
            (look for look in _style_candidates(name) if look not in used_looks), next(_style_candidates(name))
        )
    return looks_by_topology


def _style_candidates(topology: str) -> Iterator[TopologyStyle]:
    """Yield every look that a topology may have, starting with those that its name suggests."""
    number = int.from_bytes(hashlib.sha256(topology.encode("utf-8", "backslashreplace")).digest()[:4])
    markers = [marker for family, marker in _MARKERS.items() if family == _family(topology)]
    first = number % len(_OTHERS)
    for marker in (*markers, *_OTHERS[first:], *_OTHERS[:first]):
        for i in range(len(COLORS)):
            yield TopologyStyle(COLORS[(number // len(_OTHERS) + i) % len(COLORS)], marker)
