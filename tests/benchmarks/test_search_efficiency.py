"""The benchmark of search efficiency: output, hypervolumes and peers."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import form, landscapes, per_block, search_efficiency
from benchmarks.form import Figure
from benchmarks.landscapes import Landscape
from benchmarks.search_efficiency import AnyLandscape, Proposals, reject
from nas.budget.bounds import Feasible
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.axis_names import option_of
from search_spaces.spaces.space import Candidate, SearchSpace

ROOT = Path(__file__).parents[2]
BASE = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=16)
SPACE = SearchSpace(
    "tiny",
    BASE,
    {
        "depth": tuple(range(1, 9)),
        "heads": tuple(range(1, 5)),
        "head_dim": (2, 4, 8),
        "topology": ("resnet", "dca"),
        "dca.k": (1, 2),
    },
)
INSIDE = tuple(
    architecture for architecture in SPACE.architectures if 4 <= architecture.depth * architecture.heads <= 12
)
LANDSCAPE = Landscape(
    Feasible(SPACE, tuple(map(Candidate, INSIDE))),
    {architecture: architecture.depth * architecture.heads for architecture in SPACE.architectures},
    {architecture: 1 / architecture.depth + 0.1 / architecture.heads for architecture in SPACE.architectures},
    noise=0.0,
)


def quick_reject(landscape: AnyLandscape, seed: int, trials: int | None = None) -> Proposals:
    """Random values rarely fit the budget of the implicit space; finding one takes seconds."""
    search = reject if landscape is LANDSCAPE else search_efficiency.PEERS["nas-random"]
    return search(landscape, seed, trials)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = {("interacting", "band"): LANDSCAPE, ("interacting", "cap"): LANDSCAPE, ("other", "band"): LANDSCAPE}
    monkeypatch.setattr(search_efficiency, "landscapes", lambda budgets: sets)
    monkeypatch.setattr(search_efficiency, "TRIALS", 10)
    monkeypatch.setattr(per_block, "seconds_to_count", lambda: 0.5)  # it is measured by the command
    monkeypatch.setitem(search_efficiency.PEERS, "reject", quick_reject)


@pytest.mark.outside
def test_quick_run_prints_one_json_object(
    tiny: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["search_efficiency", "--quick", "--json"])
    form.main("search_efficiency", search_efficiency.figures)
    check(json.loads(capsys.readouterr().out))


@pytest.mark.slow
def test_command_prints_one_json_object() -> None:
    command = [sys.executable, "-m", "benchmarks.search_efficiency", "--quick", "--json"]
    check(json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout))


def check(record: dict[str, dict[str, dict[str, object]]]) -> None:
    assert record["benchmark"] == "search_efficiency"
    assert record["machine"].keys() == {"cpu", "cores", "gpu", "python", "torch"}
    figures = record["figures"]
    targets = {"useful_share_band": 1.0, "useful_share_cap": 1.0, "hypervolume_band": 0.99, "hypervolume_cap": 0.98}
    assert targets.keys() <= figures.keys()
    assert {name: figures[name]["target"] for name in targets} == targets
    assert figures["useful_share_band"]["value"] == figures["useful_share_cap"]["value"] == 1.0
    assert figures.pop("count_1e36_members_cpu_s")["unit"] == "s"
    for figure in figures.values():
        assert figure.keys() == {"value", "unit", "better", "target", "peers"}
        assert figure["unit"] == "share"
        assert figure["better"] == "higher"
        assert isinstance(figure["peers"], dict)
        assert 0 < float(str(figure["value"])) <= 1
        assert all(0 <= value <= 1 for value in figure["peers"].values())
    for name in targets:
        assert {"optuna-tpe", "optuna-nsga2", "optuna-random", "reject"} <= set(dict(figures[name]["peers"]))


def test_whole_feasible_set_has_hypervolume_1_and_nothing_has_0() -> None:
    assert LANDSCAPE.hypervolume(set(INSIDE)) == 1.0
    assert LANDSCAPE.hypervolume(set()) == 0.0


def test_hypervolume_is_the_dominated_area() -> None:
    subset = set(INSIDE[::7])
    worst = max(map(LANDSCAPE.loss.__getitem__, INSIDE)), max(map(LANDSCAPE.flops.__getitem__, INSIDE))

    def area(architectures: set[Architecture]) -> float:
        """The dominated share of a fine grid's cells."""
        points = [(LANDSCAPE.loss[a], LANDSCAPE.flops[a]) for a in architectures]
        cells = [(worst[0] * (i + 0.5) / 200, worst[1] * (j + 0.5) / 200) for i in range(200) for j in range(200)]
        return sum(any(loss <= x and flops <= y for loss, flops in points) for x, y in cells)

    assert LANDSCAPE.hypervolume(subset) == pytest.approx(area(subset) / area(set(INSIDE)), abs=0.02)


@pytest.mark.parametrize("name", search_efficiency.PEERS)
def test_peer_uses_its_budget_of_trials(name: str, tiny: None) -> None:
    architectures = search_efficiency.PEERS[name](LANDSCAPE, 0)
    assert len(architectures) == 10
    assert all(architecture in SPACE.architectures for architecture in architectures if architecture is not None)


def test_losses_differ_and_are_deterministic() -> None:
    architectures = list(SPACE.architectures)[::9]
    counts = [landscapes.Count(1000 * (1 + a.depth), 1) for a in architectures]
    values = {
        name: [loss(a, count) for a, count in zip(architectures, counts, strict=True)]
        for name, (loss, noise) in landscapes.LOSSES.items()
        if noise == 0
    }
    assert len(set(map(tuple, values.values()))) == len(values)
    for name, (loss, _) in landscapes.LOSSES.items():
        if name in values:
            assert [loss(a, count) for a, count in zip(architectures, counts, strict=True)] == values[name]


def test_every_option_of_the_space_has_a_loss() -> None:
    axes, losses = landscapes.space().axes, {}
    for axis in filter(option_of, axes):
        name, _, option = axis.partition(".")
        for value in axes[axis]:
            architecture = replace(landscapes.BASE, topology=f"{name}({option}={value})")
            losses[axis, value] = [
                loss(architecture, landscapes.Count(10**7, 1)) for loss, _ in landscapes.LOSSES.values()
            ]
    assert len(losses) == len({tuple(values) for values in losses.values()}) >= 8
    gains = {value: losses["hyper.streams", value][0] for value in (2, 4)}
    assert gains[4] < gains[2]  # the paper's result at 12 blocks


def test_figure_compares_its_value_with_the_target() -> None:
    assert Figure(1.0, "s", "higher", 1.0).is_met is True
    assert Figure(0.9, "s", "higher", 1.0).is_met is False
    assert Figure(1.0, "s", "lower", 1.0).is_met is True
    assert Figure(1.1, "s", "lower", 1.0).is_met is False
    assert Figure(1.0, "s", "lower", None).is_met is None
    assert Figure(None, "s", "lower", 1.0).is_met is None


def test_table_marks_missed_targets_alone() -> None:
    lines = form.table(
        "some",
        {"slow": Figure(2.0, "s", "lower", 1.0, {"other": 3.0}), "gone": Figure(None, "GB", "lower", 1.0)},
    ).splitlines()
    assert "MISSED" in lines[-2]
    assert "other 3" in lines[-2]
    assert "gone" in lines[-1]
    assert "MISSED" not in lines[-1]


def test_output_of_a_benchmark_does_not_spoil_its_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def chatty(quick: bool) -> dict[str, Figure]:
        print("working")
        return {"quick": Figure(float(quick), "share", "higher")}

    monkeypatch.setattr(sys, "argv", ["chatty", "--json"])
    form.main("chatty", chatty)
    output = capsys.readouterr()
    assert json.loads(output.out)["figures"]["quick"]["value"] == 0.0
    header, working = output.err.splitlines()
    assert header.startswith("chatty: ")
    assert working == "working"
