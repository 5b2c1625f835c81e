"""Vega-Lite charts of a topology: the heat map of influences, and sizes over depth."""

from typing import Any

from nas.report.html.wiring_charts import FULL, coefficient_map, depth_chart, heat_map

COLOR = "#528fff"


def pair(reader: int, source: int, **changes: Any) -> dict[str, Any]:
    names = ("embedding", "1 x", "1 x")  # two layers of a block may be alike
    names_of_pair = {"reads": [*names[1:], "head"][reader], "of": names[source]}
    return {"reader": reader, "source": source, **names_of_pair, "weight": 1.0, "gain": 1.0, "share": 0.5, **changes}


PAIRS = [pair(reader, source) for reader in range(3) for source in range(reader + 1)]


def values_of(chart: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = chart["datasets"][part["data"]["name"]]
    return values


def test_heat_map_has_each_pair_and_names_at_its_axes() -> None:
    chart = heat_map(PAIRS, COLOR)
    assert values_of(chart, chart) == PAIRS
    assert chart["mark"]["color"] == COLOR
    encoding = chart["encoding"]
    assert encoding["y"]["axis"]["labelExpr"] == '["1 x", "1 x", "head"][datum.value]'
    assert encoding["x"]["axis"]["labelExpr"] == '["embedding", "1 x", "1 x"][datum.value]'
    assert [encoding[axis]["field"] for axis in ("x", "y", "opacity")] == ["source", "reader", "share"]
    assert encoding["opacity"]["scale"]["domain"] == [0, FULL]  # the same for all networks


def test_expressions_escape_names() -> None:
    evil = '"][0]+[datum'
    chart = heat_map([pair(0, 0, reads=evil)], COLOR)
    assert chart["encoding"]["y"]["axis"]["labelExpr"] == r'["\"][0]+[datum"][datum.value]'


def test_tooltip_lists_available_numbers() -> None:
    def tooltips(pairs: list[dict[str, Any]]) -> list[str]:
        return [tooltip["field"] for tooltip in heat_map(pairs, COLOR)["encoding"]["tooltip"]]

    assert tooltips(PAIRS) == ["reads", "of", "share", "weight", "gain"]
    assert tooltips([pair(0, 0, weight=None)]) == ["reads", "of", "share", "gain"]


def test_heat_map_of_a_deep_network_fits_a_screen() -> None:
    deep = [{**pair(0, 0), "reader": reader, "reads": str(reader)} for reader in range(200)]
    assert 200 < heat_map(PAIRS, COLOR)["height"] < heat_map(deep, COLOR)["height"] < 500


def lines_of(depths: list[dict[str, Any]]) -> list[tuple[str, list[tuple[int, float]]]]:
    """The scale of each vertical axis, and its points."""
    chart = depth_chart(depths, COLOR)
    assert chart["resolve"] == {"scale": {"y": "independent"}}
    lines = []
    for layer in chart["layer"]:
        y = layer["layer"][-1]["encoding"]["y"]
        points = values_of(chart, next(part for part in (layer, chart) if "data" in part))
        pairs = sorted((point["number"], point["value"]) for point in points)
        lines.append((y["scale"].get("type", "linear"), pairs))
    return lines


def test_gradients_have_their_own_axis() -> None:
    depths = [{"number": 0, "layer": "embedding", "made": 1.0}, {"number": 1, "layer": "head", "read": 2.0}]
    sizes = ("log", [(0, 1.0), (1, 2.0)])
    assert lines_of(depths) == [sizes]
    with_gradient = [{**depths[0], "gradient": 0.5}, depths[1]]
    assert lines_of(with_gradient) == [sizes, ("log", [(0, 0.5)])]


def test_sizes_of_zero_have_a_linear_axis() -> None:
    depths = [{"number": 0, "layer": "embedding", "made": 0.0}, {"number": 1, "layer": "head", "read": 2.0}]
    assert [scale for scale, _ in lines_of(depths)] == ["linear"]


def test_color_of_a_coefficient_gives_size_and_sign() -> None:
    weights = [{"row": 1, "column": "2,1", "weight": 0.5}, {"row": 2, "column": "10,1", "weight": -2.0}]
    chart = coefficient_map("A_r", weights, COLOR)
    sizes = [(value["size"], value["below"]) for value in values_of(chart, chart)]
    assert sizes == [(0.5, False), (2.0, True)]
    encoding = chart["encoding"]
    assert encoding["opacity"]["scale"]["domain"] == [0, 2.0]
    assert encoding["color"]["scale"]["range"][0] == COLOR
    assert encoding["x"]["sort"] is None  # the order of the records: 2 before 10
