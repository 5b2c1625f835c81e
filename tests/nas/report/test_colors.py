"""Every topology has a distinct and visible look, the same in every picture."""

from itertools import combinations

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from nas.report.colors import COLORS, topology_styles
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.catalog import joint, topology
from search_spaces.topologies.registry import TOPOLOGIES

BASE = Architecture(depth=2, width=8, heads=2, head_dim=4, hidden=16)
USUAL = {str(architecture.topology) for architecture in joint(BASE).architectures} | {"none"}
MEMBERS = {str(architecture.topology) for architecture in topology(BASE).architectures}
Color = NDArray[np.float64]

VISION_WITHOUT = {
    "nothing": np.eye(3),
    "red cones": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "green cones": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}
"""Linear RGB in color blindness: Machado, Oliveira and Fernandes, 2009, severity 1."""


def linear(color: str) -> Color:
    value = np.array(to_rgb(color))
    return np.asarray(np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    bright, dark = sorted((float(linear(c) @ [0.2126, 0.7152, 0.0722]) + 0.05 for c in (one, other)), reverse=True)
    return bright / dark


def oklab(linear_rgb: Color) -> Color:
    """Oklab (Ottosson, 2020): equal distances look about equally far apart."""
    cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    axes = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    return np.asarray(np.array(axes) @ np.cbrt(np.array(cones) @ linear_rgb.clip(0, 1)))


def test_usual_topologies_look_the_same_beside_any_others() -> None:
    members = sorted(USUAL)
    all_looks = topology_styles(MEMBERS)
    assert len(set(all_looks.values())) == len(MEMBERS)
    assert len(members) >= 13
    assert len({all_looks[name].color for name in members}) == len(members)
    for name in members:
        assert (
            topology_styles([name])[name]
            == topology_styles([name, "weave(gain=2)", "dca(k=3)"])[name]
            == all_looks[name]
        )


def test_other_topologies_have_stable_and_distinct_looks() -> None:
    others = ["weave", "weave(gain=2)", *(f"dca(k={k})" for k in range(3, 9)), "dca(k=2)/resnet", "<script>"]
    all_looks = topology_styles([*others, "dca(k=2)"])
    assert len(set(all_looks.values())) == len(all_looks)
    assert topology_styles(["weave"])["weave"] == all_looks["weave"]
    assert topology_styles(["dca(k=3)"])["dca(k=3)"].marker == all_looks["dca(k=2)"].marker
    assert len(topology_styles(map(str, range(200)))) == 200  # more than there are distinct looks


def test_colors_are_distinct_also_to_the_color_blind() -> None:
    for missing, matrix in VISION_WITHOUT.items():
        colors = [oklab(matrix @ linear(color)) for color in COLORS]
        distance = min(float(np.linalg.norm(one - other)) for one, other in combinations(colors, 2))
        assert distance > 0.065, missing


def test_colors_are_legible_on_a_white_and_on_a_dark_page() -> None:
    for page in ("#ffffff", "#15181d"):
        assert min(contrast(color, page) for color in COLORS) >= 2.99, page


def test_markers_exist_in_matplotlib() -> None:
    codes = {look.marker.code for look in topology_styles([*map(str, range(60)), *MEMBERS]).values()}
    assert len(codes) == 14
    assert codes <= {str(marker) for marker in Line2D.markers}


def test_each_topology_of_this_project_looks_the_same_everywhere() -> None:
    names = [name for name in TOPOLOGIES.names() if TOPOLOGIES.is_builtin(name)]
    assert len(names) >= 25
    all_looks = topology_styles([*names, *USUAL, "weave"])
    assert len(set(all_looks.values())) == len(all_looks)
    assert all(topology_styles([name])[name] == all_looks[name] for name in names)
    colors = [all_looks[name].color for name in names]
    assert max(map(colors.count, colors)) <= 3
