"""The report of `nas.show`: numbers by name, tables and pictures."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from expect import raises
from nas.report.colors import topology_styles
from nas.report.wiring.influence import influences
from nas.report.wiring.stack_wiring import coefficient_records, depth_records, matrix_records, name_stack
from nas.report.wiring.wiring_figure import MAX_NAMES, MAX_NUMBERS
from nas.report.wiring.wiring_report import WiringReport
from search_spaces.layers.stack import Stack
from search_spaces.testing.small_networks import dense, embeddings, perturb, transformer
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology


@cache
def report_of(topology: str, depth: int = 2, *, loss: bool = True, name: str = "") -> WiringReport:
    stack = perturb(transformer(*resolve_topology(topology), depth, 4, 4))

    def forward() -> torch.Tensor | None:
        loss_value = stack(*embeddings()).square().mean()
        return loss_value if loss else None

    return WiringReport("a $title", topology, (name_stack(name, stack, influences(stack, forward)[""]),))


def stack_of_dense(depth: int) -> Stack:
    return dense(*resolve_topology("resnet"), depth)


def test_names_of_layers_have_block_kind_and_port() -> None:
    (wiring,) = report_of("dca").stacks
    assert wiring.sources == ("embedding", "1 attention", "1 feed-forward", "2 attention", "2 feed-forward")
    assert wiring.readers[:5] == ("1 attention q", "1 attention k", "1 attention v", "1 feed-forward", "2 attention q")
    assert wiring.readers[-1] == "head"
    stack = stack_of_dense(2)
    influence = influences(stack, lambda: stack(embeddings()[0]).mean())[""]
    assert name_stack("", stack, influence).readers == ("1 dense", "2 dense", "head")


def test_each_reader_has_a_record_for_each_source() -> None:
    data = report_of("denseformer").to_pandas()
    assert len(data) == 1 + 2 + 3 + 4 + 5
    assert list(data.columns[:6]) == ["layer", "reader", "source", "of", "weight", "gain"]
    assert (data["source"] < data["layer"]).all()
    record = data[(data["layer"] == 2) & (data["source"] == 1)].iloc[0]
    assert (record["reader"], record["of"], record["weight"]) == ("1 feed-forward", "1 attention", pytest.approx(1))
    assert data.groupby("reader")["share"].sum().to_list() == pytest.approx([1] * 5)


def test_head_space_has_gains_and_no_weights() -> None:
    report = report_of("rmt")
    assert report.to_pandas()["weight"].isna().all()
    assert report.stacks[0].quantity == "gain"
    assert (report.stacks[0].matrix == report.stacks[0].influence.gains).all()


def test_tables_have_sizes_and_gradients_of_each_layer() -> None:
    (stack,) = report_of("resnet").stacks
    assert matrix_records(stack)[1] == {"reader": "1 feed-forward", "0": pytest.approx(1), "1": pytest.approx(1)}
    first, *_, last = depth_records(stack)
    assert (first["number"], first["layer"]) == (0, "embedding")
    assert first.keys() == {"number", "layer", "made", "gradient"}
    assert last == {"number": 5, "layer": "head", "read": pytest.approx(stack.influence.input_rms[-1])}
    assert "gradient" not in depth_records(report_of("resnet", loss=False).stacks[0])[0]


def test_own_weights_of_a_topology_have_rows_and_columns() -> None:
    (stack,) = report_of("hyper(streams=2)").stacks
    assert [*stack.coefficients] == ["A_m", "A_r", "B"]
    first, *_ = coefficient_records(stack.coefficients["A_r"])
    assert first == {"row": 1, **{name: pytest.approx(x) for name, x in zip(
        ("1,1", "1,2", "2,1", "2,2"), stack.coefficients["A_r"][0].flatten(), strict=True)}}  # fmt: skip
    (stack,) = report_of("ancre").stacks
    first, second = coefficient_records(stack.coefficients["p"])
    assert first == {"row": 1, "1": 1.0, "2": None}
    assert second["1"] + second["2"] == pytest.approx(1)


@pytest.mark.parametrize("topology", ["mhc", "hyper(streams=2)"])
def test_own_weights_have_lines_between_matrices_and_numbers_if_there_is_room(topology: str) -> None:
    network = report_of(topology)
    panels = {axes.get_title(loc="left"): axes for axes in network.plot().get_axes()}
    for name, weights in network.stacks[0].coefficients.items():
        rows, columns = len(weights), weights[0].size
        assert len(panels[name].get_lines()) == columns // weights.shape[-1] - 1
        assert len(panels[name].texts) == (weights.size if max(rows, columns) <= MAX_NUMBERS else 0)


def test_picture_of_a_topology_without_own_weights() -> None:
    report = report_of("denseformer(period=9)")
    assert report.stacks[0].coefficients == {}
    assert len(report.plot().get_axes()) == len(report_of("resnet").plot().get_axes())


def test_notebook_shows_the_tables() -> None:
    html = report_of("resnet")._repr_html_()
    assert html.count("<table") == 2
    assert report_of("mhc")._repr_html_().count("<table") == 5
    assert "1 feed-forward" in html
    assert "NaN" not in html


def letters(figure: Figure) -> list[str]:
    parts = [text for axes in figure.get_axes() for text in (*axes.texts, axes.title, *axes.get_yticklabels())]
    return [text.get_text() for text in parts]


@pytest.mark.slow
def test_every_topology_has_a_picture(tmp_path: Path) -> None:
    for topology in TOPOLOGIES.names():
        path = tmp_path / "wiring.png"
        report_of(topology, 1).plot(path)
        assert path.stat().st_size > 20_000, topology


def test_picture_in_each_format(tmp_path: Path) -> None:
    for topology, ending in (("ancre", ".png"), ("rmt", ".pdf")):  # one with own weights, one in head space
        path = tmp_path / f"wiring{ending}"
        report_of(topology, 1).plot(path)
        assert path.stat().st_size > 20_000
    with raises("unsupported", path=str(tmp_path / "wiring.jpg")):
        report_of("resnet", 1).plot(tmp_path / "wiring.jpg")


def test_picture_without_a_loss_has_no_gradients(tmp_path: Path) -> None:
    path = tmp_path / "wiring.svg"
    figure = report_of("depth-lstm", 1, loss=False, name="actor.stack").plot(path)
    (empty,) = (axes for axes in figure.get_axes() if not axes.axison)
    assert not empty.get_lines()
    assert path.stat().st_size > 20_000
    assert "actor" in path.read_text()


def test_curves_have_the_color_of_the_topology() -> None:
    lines = [line for axes in report_of("ancre").plot().get_axes() for line in axes.get_lines()]
    colors = [line.get_color() for line in lines if line.get_linewidth() == 1.2]
    assert colors == [topology_styles(["ancre"])["ancre"].color] * 3  # inputs, outputs, gradients


def test_few_layers_have_names_numbers_and_arcs() -> None:
    figure = report_of("grn-v1").plot()
    assert "2 attention" in letters(figure)
    assert ".2" in {text[:2] for text in letters(figure)}
    arcs = [patch for axes in figure.get_axes() for patch in axes.patches]
    assert len(arcs) == 1 + 2 + 3 + 4 + 5


def test_many_layers_have_numbers_at_the_axes_only() -> None:
    stack = stack_of_dense(64)
    influence = influences(stack, lambda: stack(embeddings()[0]).mean())[""]
    figure = WiringReport("deep", "resnet", (name_stack("", stack, influence),)).plot()
    texts = letters(figure)
    assert not [text for text in texts if "dense" in text]
    tick_counts: list[Any] = [len(axes.get_yticks()) for axes in figure.get_axes() if axes.images and axes.get_ylabel()]
    assert tick_counts
    assert max(tick_counts) <= 2 * MAX_NAMES
