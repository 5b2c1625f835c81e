"""What `nas.show` returns: numbers by name, tables and pictures."""

from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from nas.colours import looks
from nas.picture import save_figure
from nas.showing.drawing import NAMED
from nas.showing.influence import influences
from nas.showing.shown import Shown
from nas.showing.stacks import coefficient_records, depth_records, matrix_records, shown_stack
from search_spaces.errors import UserError
from search_spaces.layers.stack import Stack
from search_spaces.small_networks import dense, embeddings, perturbed, transformer
from search_spaces.topologies.registry import TOPOLOGIES, load


def shown(topology: str, depth: int = 2, *, loss: bool = True, name: str = "") -> Shown:
    stack = perturbed(transformer(*load(topology), depth, 4, 4))

    def forward() -> torch.Tensor | None:
        made = stack(*embeddings()).square().mean()
        return made if loss else None

    return Shown("a $title", topology, (shown_stack(name, stack, influences(stack, forward)[""]),))


def stack_of_dense(depth: int) -> Stack:
    return dense(*load("resnet"), depth)


def test_layers_are_called_by_block_kind_and_port() -> None:
    (one,) = shown("dca").stacks
    assert one.sources == ("embedding", "1 attention", "1 feed-forward", "2 attention", "2 feed-forward")
    assert one.readers[:5] == ("1 attention q", "1 attention k", "1 attention v", "1 feed-forward", "2 attention q")
    assert one.readers[-1] == "head"
    stack = stack_of_dense(2)
    found = influences(stack, lambda: stack(embeddings()[0]).mean())[""]
    assert shown_stack("", stack, found).readers == ("1 dense", "2 dense", "head")


def test_a_record_for_each_reader_and_what_it_can_read() -> None:
    data = shown("denseformer").to_pandas()
    assert len(data) == 1 + 2 + 3 + 4 + 5
    assert list(data.columns[:6]) == ["layer", "reader", "source", "of", "weight", "gain"]
    assert (data["source"] < data["layer"]).all()
    one = data[(data["layer"] == 2) & (data["source"] == 1)].iloc[0]
    assert (one["reader"], one["of"], one["weight"]) == ("1 feed-forward", "1 attention", pytest.approx(1))
    assert data.groupby("reader")["share"].sum().to_list() == pytest.approx([1] * 5)


def test_in_head_space_there_is_a_gain_and_no_weight() -> None:
    found = shown("rmt")
    assert found.to_pandas()["weight"].isna().all()
    assert found.stacks[0].quantity == "gain"
    assert (found.stacks[0].matrix == found.stacks[0].influence.gains).all()


def test_tables_say_what_each_layer_reads_makes_and_how_strong_gradients_are() -> None:
    (stack,) = shown("resnet").stacks
    assert matrix_records(stack)[1] == {"reader": "1 feed-forward", "0": pytest.approx(1), "1": pytest.approx(1)}
    first, *_, last = depth_records(stack)
    assert (first["number"], first["layer"]) == (0, "embedding")
    assert first.keys() == {"number", "layer", "made", "gradient"}
    assert last == {"number": 5, "layer": "head", "read": pytest.approx(stack.influence.read[-1])}
    assert "gradient" not in depth_records(shown("resnet", loss=False).stacks[0])[0]


def test_a_topologys_own_weights_have_rows_and_columns() -> None:
    (stack,) = shown("hyper(streams=2)").stacks
    assert [*stack.coefficients] == ["A_m", "A_r", "B"]
    first, *_ = coefficient_records(stack.coefficients["A_r"])
    assert first == {"row": 1, **{name: pytest.approx(x) for name, x in zip(
        ("1,1", "1,2", "2,1", "2,2"), stack.coefficients["A_r"][0].flatten(), strict=True)}}  # fmt: skip
    (stack,) = shown("ancre").stacks
    first, second = coefficient_records(stack.coefficients["p"])
    assert first == {"row": 1, "1": 1.0, "2": None}
    assert second["1"] + second["2"] == pytest.approx(1)


def test_where_there_is_no_weight_none_is_shown(tmp_path: Path) -> None:
    found = shown("denseformer(period=9)")
    assert found.stacks[0].coefficients == {}
    found.plot(tmp_path / "drawn.png")


def test_a_notebook_shows_the_tables() -> None:
    html = shown("resnet")._repr_html_()
    assert html.count("<table") == 2
    assert shown("mhc")._repr_html_().count("<table") == 5
    assert "1 feed-forward" in html
    assert "NaN" not in html


def letters(figure: Figure) -> list[str]:
    parts = [text for axes in figure.get_axes() for text in (*axes.texts, axes.title, *axes.get_yticklabels())]
    return [text.get_text() for text in parts]


@pytest.mark.parametrize("topology", TOPOLOGIES.names())
def test_every_topology_is_drawn(topology: str, tmp_path: Path) -> None:
    path = tmp_path / "wiring.png"
    shown(topology, 1).plot(path)
    assert path.stat().st_size > 20_000


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_a_picture_of_each_kind(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"wiring{ending}"
    shown("resnet", 1).plot(path)
    assert path.stat().st_size > 5_000
    with pytest.raises(UserError, match=r"must end in \.png"):
        shown("resnet", 1).plot(tmp_path / "wiring.jpg")


def test_curves_have_the_colour_of_the_topology() -> None:
    figure = shown("ancre").plot()
    lines = [line for axes in figure.get_axes() for line in axes.get_lines() if line.get_label() == "what it reads"]
    assert [line.get_color() for line in lines] == [looks(["ancre"])["ancre"].colour]


def test_few_layers_are_named_and_numbered_and_joined_by_arcs() -> None:
    figure = shown("grn-v1").plot()
    assert "2 attention" in letters(figure)
    assert ".2" in {text[:2] for text in letters(figure)}
    arcs = [patch for axes in figure.get_axes() for patch in axes.patches]
    assert len(arcs) == 1 + 2 + 3 + 4 + 5


def test_many_layers_are_numbered_at_the_axes_alone() -> None:
    stack = stack_of_dense(64)
    found = influences(stack, lambda: stack(embeddings()[0]).mean())[""]
    figure = Shown("deep", "resnet", (shown_stack("", stack, found),)).plot()
    said = letters(figure)
    assert not [text for text in said if "dense" in text]
    named: list[Any] = [len(axes.get_yticks()) for axes in figure.get_axes() if axes.images and axes.get_ylabel()]
    assert named
    assert max(named) <= 2 * NAMED


def test_without_a_loss_the_picture_says_so(tmp_path: Path) -> None:
    figure = shown("resnet", loss=False, name="actor.stack").plot()
    assert "the task gives no loss of a batch" in letters(figure)
    save_figure(figure, tmp_path / "one.svg")
    assert "actor" in (tmp_path / "one.svg").read_text()
