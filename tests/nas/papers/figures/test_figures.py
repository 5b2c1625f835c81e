"""Figures from trainings: points are losses of their networks, and agree with the published table."""

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

TABLE = Path(__file__).parents[4] / "results" / "tables" / "figures" / "linear-networks.csv"


def table_points(figure: str) -> dict[tuple[str, int], tuple[float, float]]:
    with TABLE.open() as file:
        return {
            (line["network"], int(line["steps"])): (float(line["log10_loss"]), float(line["log10_loss_se"]))
            for line in csv.DictReader(file)
            if line["figure"] == figure
        }


def test_curve_has_means_and_standard_errors_over_seeds() -> None:
    average = Curve("a", [0, 10], [[1.0, 2.0, 6.0], [0.0, 0.0, 0.0]])
    assert average.means == [3.0, 0.0]
    assert average.errors == pytest.approx([sqrt((4 + 1 + 9) / 2 / 3), 0.0])
    assert Curve("a", [0], [[1.0]]).errors == [0.0]
    assert Panel("dca", "1", "said", "layers", [average]).records()[0] == {
        "paper": "dca", "figure": "1", "network": "a", "layers": 0,
        "log10_loss": 3.0, "log10_loss_se": average.errors[0], "seeds": 3,
    }  # fmt: skip


def test_point_is_the_loss_after_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortcuts, "_STEPS", 8)
    monkeypatch.setattr(shortcut_layouts, "EVERY", 4)
    curves = {panel_curve.network: panel_curve for panel_curve in shortcut_layouts.panels(seeds=2)[1].curves}
    for name, net in (("0:2", LinearNet(3, ((0, 2),))), ("ANCRe 0.01", LinearNet(3, temperature=0.01))):
        points = curves[name]
        assert list(points.x) == [0, 4, 8]
        for steps, decades in zip(points.x, points.decades, strict=True):
            monkeypatch.setattr(shortcuts, "_STEPS", steps)
            assert 10.0 ** torch.tensor(decades, dtype=torch.float64) == pytest.approx(curve(net, 2)[-1])


def test_panels_train_every_shortcut_of_three_layers_and_every_pair_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    nets: list[LinearNet] = []

    def fake_curve(net: LinearNet, seeds: int) -> torch.Tensor:
        nets.append(net)
        exponent = -9.0 if net.skips == ((0, 3), (1, 4)) else -1.0
        return torch.full((41, seeds), 10.0**exponent)

    monkeypatch.setattr(shortcut_layouts, "curve", fake_curve)
    deep, three, four = shortcut_layouts.panels(seeds=2)
    assert [net.layers for net in nets[:3]] == [2, 3, 4]
    assert {net.skips for net in nets if net.layers == 3 and len(net.skips) == 1} == {
        ((i, j),) for i in range(3) for j in range(i + 1, 4)
    }
    pairs = [net.skips for net in nets if net.layers == 4 and len(net.skips) == 2]
    assert len(set(pairs)) == len(pairs) == 45
    assert len(deep.curves) == 3
    assert [panel_curve.network for panel_curve in three.curves][:2] == ["none", "cascaded"]
    highlights = {panel_curve.network for panel_curve in four.curves if panel_curve.highlight}
    assert highlights == {"0:3 alone", "1:2+2:3", "0:2+2:3", "0:3+1:4", "ANCRe 0.1", "ANCRe 0.01"}


def test_shipped_table_agrees_with_trainings() -> None:
    """Only figure 2 (a): late points of fast networks depend on the processor's rounding."""
    step, curves = shortcut_layouts.EVERY, []
    for layers in (2, 3, 4):
        decades = curve(LinearNet(layers), shortcut_layouts.SEEDS).log10()[::step].tolist()
        curves.append(Curve(f"{layers} layers", range(0, step * len(decades), step), decades))
    panel, expected = Panel("ancre", "2 (a)", "", "steps", curves), table_points("2 (a)")
    assert len(expected) == len(panel.records()) == 33
    for record in panel.records():
        mean, error = expected[record["network"], record["steps"]]
        assert (record["log10_loss"], record["log10_loss_se"]) == pytest.approx((mean, error), abs=1e-6)


def test_low_rank_networks_use_their_best_rates_and_fresh_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int, Sequence[int]]] = []

    def best(topology: str, affine: bool, rates: Sequence[float], seeds: Sequence[int], layers: int) -> float:
        calls.append((topology, layers, seeds))
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
    assert {layers for _, layers, _ in calls} == {2, 5, 10}
    assert all(list(seeds) == [2] for *_, seeds in calls)
    assert [panel.figure for panel in panels] == ["1 (a)", "1 (a) by depth", "1 (b)", "1 (b) by depth"]
    by_batch, by_depth = panels[:2]
    rates = low_rank.TARGETS[0][3]
    assert by_depth.curves[0].decades == [[n + seed + rates[n % 5] for seed in range(2)] for n in (2, 5, 10)]
    plain, infinite = by_batch.curves[0], by_batch.curves[2]
    assert list(plain.x) == [10, 20, 30, 40]
    assert plain.means[1:] == pytest.approx([torch.tensor(100 * rates[0]).log10().item()] * 3)
    assert infinite.means[2:] == [0.0, 0.0]  # the first loss
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
