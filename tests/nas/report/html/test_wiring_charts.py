"""The heat map of who reads what, and sizes over depth, as what Vega-Lite is given."""

from typing import Any

from nas.report.html.wiring_charts import FULL, coefficient_map, depth_chart, heat_map

COLOUR = "#528fff"


def pair(reader: int, source: int, **changes: Any) -> dict[str, Any]:
    names = ("embedding", "1 x", "1 x")  # two layers of a block may be alike
    named = {"reads": [*names[1:], "head"][reader], "of": names[source]}
    return {"reader": reader, "source": source, **named, "weight": 1.0, "gain": 1.0, "share": 0.5, **changes}


PAIRS = [pair(reader, source) for reader in range(3) for source in range(reader + 1)]


def values_of(whole: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = whole["datasets"][part["data"]["name"]]
    return values


def test_heat_map_has_each_pair_and_names_at_its_axes() -> None:
    drawn = heat_map(PAIRS, COLOUR)
    assert values_of(drawn, drawn) == PAIRS
    assert drawn["mark"]["color"] == COLOUR
    encoding = drawn["encoding"]
    assert encoding["y"]["axis"]["labelExpr"] == '["1 x", "1 x", "head"][datum.value]'
    assert encoding["x"]["axis"]["labelExpr"] == '["embedding", "1 x", "1 x"][datum.value]'
    assert [encoding[axis]["field"] for axis in ("x", "y", "opacity")] == ["source", "reader", "share"]
    assert encoding["opacity"]["scale"]["domain"] == [0, FULL]  # of every network: they can be held against each other


def test_names_are_escaped_in_expressions() -> None:
    evil = '"][0]+[datum'
    drawn = heat_map([pair(0, 0, reads=evil)], COLOUR)
    assert drawn["encoding"]["y"]["axis"]["labelExpr"] == r'["\"][0]+[datum"][datum.value]'


def test_tooltip_lists_available_numbers() -> None:
    def tooltips(pairs: list[dict[str, Any]]) -> list[str]:
        return [each["field"] for each in heat_map(pairs, COLOUR)["encoding"]["tooltip"]]

    assert tooltips(PAIRS) == ["reads", "of", "share", "weight", "gain"]
    assert tooltips([pair(0, 0, weight=None)]) == ["reads", "of", "share", "gain"]


def test_heat_map_of_a_deep_network_fits_a_screen() -> None:
    deep = [{**pair(0, 0), "reader": reader, "reads": str(reader)} for reader in range(200)]
    assert 200 < heat_map(PAIRS, COLOUR)["height"] < heat_map(deep, COLOUR)["height"] < 500


def drawn_lines(depths: list[dict[str, Any]]) -> list[tuple[str, list[tuple[int, float]]]]:
    """Scale of each vertical axis, and the points that are drawn by it."""
    chart = depth_chart(depths, COLOUR)
    assert chart["resolve"] == {"scale": {"y": "independent"}}
    found = []
    for layer in chart["layer"]:
        y = layer["layer"][-1]["encoding"]["y"]
        points = values_of(chart, next(part for part in (layer, chart) if "data" in part))
        drawn = sorted((one["number"], one["value"]) for one in points)
        found.append((y["scale"].get("type", "linear"), drawn))
    return found


def test_gradients_have_their_own_axis() -> None:
    depths = [{"number": 0, "layer": "embedding", "made": 1.0}, {"number": 1, "layer": "head", "read": 2.0}]
    sizes = ("log", [(0, 1.0), (1, 2.0)])
    assert drawn_lines(depths) == [sizes]
    with_gradient = [{**depths[0], "gradient": 0.5}, depths[1]]
    assert drawn_lines(with_gradient) == [sizes, ("log", [(0, 0.5)])]


def test_sizes_of_zero_have_a_linear_axis() -> None:
    depths = [{"number": 0, "layer": "embedding", "made": 0.0}, {"number": 1, "layer": "head", "read": 2.0}]
    assert [scale for scale, _ in drawn_lines(depths)] == ["linear"]


def test_coefficient_map_are_coloured_by_size_and_sign() -> None:
    weights = [{"row": 1, "column": "2,1", "weight": 0.5}, {"row": 2, "column": "10,1", "weight": -2.0}]
    drawn = coefficient_map("A_r", weights, COLOUR)
    sized = [(one["size"], one["below"]) for one in values_of(drawn, drawn)]
    assert sized == [(0.5, False), (2.0, True)]
    encoding = drawn["encoding"]
    assert encoding["opacity"]["scale"]["domain"] == [0, 2.0]
    assert encoding["color"]["scale"]["range"][0] == COLOUR
    assert encoding["x"]["sort"] is None  # as they come: 2 is before 10
