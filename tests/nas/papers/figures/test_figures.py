"""Figures that are trained anew: their points are their networks' losses, and the table that ships has them."""

import csv
from collections.abc import Sequence
from math import sqrt
from pathlib import Path

import pytest
import torch

from nas.papers.claims import dilution, shortcuts
from nas.papers.claims.shortcuts import LinearNet, curve
from nas.papers.figures import Curve, Panel, low_rank, shortcut_layouts
from nas.papers.figures.panels import draw_figure

SHIPPED = Path(__file__).parents[4] / "results" / "tables" / "figures" / "linear-networks.csv"


def shipped(figure: str) -> dict[tuple[str, int], tuple[float, float]]:
    with SHIPPED.open() as file:
        return {
            (line["network"], int(line["steps"])): (float(line["log10_loss"]), float(line["log10_loss_se"]))
            for line in csv.DictReader(file)
            if line["figure"] == figure
        }


def test_curve_has_means_and_standard_errors_over_seeds() -> None:
    one = Curve("a", [0, 10], [[1.0, 2.0, 6.0], [0.0, 0.0, 0.0]])
    assert one.means == [3.0, 0.0]
    assert one.errors == pytest.approx([sqrt((4 + 1 + 9) / 2 / 3), 0.0])
    assert Curve("a", [0], [[1.0]]).errors == [0.0]
    assert Panel("dca", "1", "said", "layers", [one]).records()[0] == {
        "paper": "dca", "figure": "1", "network": "a", "layers": 0,
        "log10_loss": 3.0, "log10_loss_se": one.errors[0], "seeds": 3,
    }  # fmt: skip


def test_point_is_the_loss_after_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortcuts, "_STEPS", 8)
    monkeypatch.setattr(shortcut_layouts, "EVERY", 4)
    curves = {one.network: one for one in shortcut_layouts.panels(seeds=2)[1].curves}
    for name, net in (("0:2", LinearNet(3, ((0, 2),))), ("ANCRe 0.01", LinearNet(3, temperature=0.01))):
        drawn = curves[name]
        assert list(drawn.at) == [0, 4, 8]
        for steps, decades in zip(drawn.at, drawn.decades, strict=True):
            monkeypatch.setattr(shortcuts, "_STEPS", steps)
            assert 10.0 ** torch.tensor(decades, dtype=torch.float64) == pytest.approx(curve(net, 2)[-1])


def test_panels_train_every_shortcut_of_three_layers_and_every_pair_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[LinearNet] = []

    def fake_curve(net: LinearNet, seeds: int) -> torch.Tensor:
        trained.append(net)
        place = -9.0 if net.skips == ((0, 3), (1, 4)) else -1.0
        return torch.full((41, seeds), 10.0**place)

    monkeypatch.setattr(shortcut_layouts, "curve", fake_curve)
    deep, three, four = shortcut_layouts.panels(seeds=2)
    assert [net.layers for net in trained[:3]] == [2, 3, 4]
    assert {net.skips for net in trained if net.layers == 3 and len(net.skips) == 1} == {
        ((i, j),) for i in range(3) for j in range(i + 1, 4)
    }
    pairs = [net.skips for net in trained if net.layers == 4 and len(net.skips) == 2]
    assert len(set(pairs)) == len(pairs) == 45
    assert len(deep.curves) == 3
    assert [one.network for one in three.curves][:2] == ["none", "cascaded"]
    stand_out = {one.network for one in four.curves if one.highlight}
    assert stand_out == {"0:3 alone", "1:2+2:3", "0:2+2:3", "0:3+1:4", "ANCRe 0.1", "ANCRe 0.01"}


def test_shipped_table_agrees_with_trainings() -> None:
    """Of figure 2 (a) all of it; late points of fast networks hang on how a processor rounds."""
    every, curves = shortcut_layouts.EVERY, []
    for layers in (2, 3, 4):
        decades = curve(LinearNet(layers), shortcut_layouts.SEEDS).log10()[::every].tolist()
        curves.append(Curve(f"{layers} layers", range(0, every * len(decades), every), decades))
    panel, there = Panel("ancre", "2 (a)", "", "steps", curves), shipped("2 (a)")
    assert len(there) == len(panel.records()) == 33
    for record in panel.records():
        mean, error = there[record["network"], record["steps"]]
        assert (record["log10_loss"], record["log10_loss_se"]) == pytest.approx((mean, error), abs=1e-6)


def test_low_rank_networks_use_their_best_rates_and_fresh_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, int, Sequence[int]]] = []

    def best(topology: str, affine: bool, rates: Sequence[float], seeds: Sequence[int], layers: int) -> float:
        asked.append((topology, layers, seeds))
        return rates[layers % len(rates)]

    def fake_curve(topology: str, affine: bool, rate: float, seed: int, layers: int) -> torch.Tensor:
        losses = torch.full((40,), 100.0 * rate)
        losses[0] = 1.0
        if topology == "grn-v3":
            losses[20:] = float("inf")
        return losses

    monkeypatch.setattr(low_rank, "best_rate", best)
    monkeypatch.setattr(low_rank, "curve", fake_curve)
    monkeypatch.setattr(low_rank, "final_log10_loss", lambda topology, affine, rate, seed, layers: layers + seed + rate)
    panels = low_rank.panels(seeds=2)
    assert {layers for _, layers, _ in asked} == {2, 5, 10}
    assert all(list(seeds) == [2] for *_, seeds in asked)
    assert [panel.figure for panel in panels] == ["1 (a)", "1 (a) by depth", "1 (b)", "1 (b) by depth"]
    by_batch, by_depth = panels[:2]
    rates = low_rank.TARGETS[0][3]
    assert by_depth.curves[0].decades == [[n + seed + rates[n % 5] for seed in range(2)] for n in (2, 5, 10)]
    plain, diverged = by_batch.curves[0], by_batch.curves[2]
    assert list(plain.at) == [10, 20, 30, 40]
    assert plain.means[1:] == pytest.approx([torch.tensor(100 * rates[0]).log10().item()] * 3)
    assert diverged.means[2:] == [0.0, 0.0]  # its first loss
    assert plain.network == f"resnet, rate {rates[0]:g}"


def test_low_rank_curve_ends_where_the_claims_measure() -> None:
    losses = dilution.curve("resnet", False, 1e-3, 0, layers=2)
    assert losses[-20:].mean().log10().item() == pytest.approx(
        dilution.final_log10_loss("resnet", False, 1e-3, 0, layers=2)
    )
    assert len(losses) == 200


def test_picture_has_a_row_a_paper_and_a_line_a_curve() -> None:
    curves = [Curve("a", [0, 1], [[1.0], [0.0]]), *(Curve(n, [0, 1], [[2.0], [1.0]], highlight=False) for n in "bc")]
    panels = [Panel("ancre", "2", "said", "steps", curves), Panel("dca", "1", "said too", "layers", curves[:1])]
    figure = draw_figure([*panels, panels[1]])
    assert len(figure.axes) == 3
    first = figure.axes[0]
    assert len(first.lines) == 3
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["2 others", "a"]  # type: ignore[union-attr]
    assert first.get_xlabel() == "steps"
    assert "said too" in figure.axes[1].get_title(loc="left")
