"""`nas effects`: a table for each task, agreement between tasks, a picture, and errors."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nas
from command_line import Command
from expect import raises
from grouped import grouped
from nas.report.colors import topology_styles
from nas.report.plots import draw_effects
from nas.report.study import Study
from results.records.row import Direction, Row
from search_spaces.support.errors import Kind
from toy_rows import LITTLE, a_row

TASKS = {"sight": {"resnet": 0.5, "dca": 0.6, "rmt": 0.8}, "speech": {"resnet": 0.2, "dca": 0.1, "rmt": 0.4}}


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    """The tables of two tasks: three topologies at two depths."""
    files = []
    for task, values in TASKS.items():
        path = tmp_path / f"{task}.csv"
        lines = [
            f"{task},complete,{topology},{depth},0,{value + depth},{depth * 100}"
            for topology, value in values.items()
            for depth in (1, 2)
        ]
        path.write_text("\n".join(["task,status,topology,depth,seed,accuracy,flops", *lines]), encoding="utf-8")
        files.append(str(path))
    return files


def sources(files: list[str]) -> list[str]:
    return [word for file in files for word in ("--from", file)]


def test_a_table_for_each_task_and_the_agreement_of_two(command: Command, tables: list[str]) -> None:
    out = command("effects", "topology", "--metric", "max accuracy", *sources(tables)).stdout
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][0] == "sight:"
    rmt = next(line for line in lines if line[:1] == ["rmt"])
    assert (rmt[1], rmt[-2:]) == ("0.3", ["2", "2.3"])  # what is dropped first stands last
    (taus,) = [line for line in lines if line[:2] == ["sight", "speech"]]
    assert taus[2:4] == ["3", "0.3333"]


def test_command_writes_a_file_and_a_picture(command: Command, tables: list[str]) -> None:
    words = ("topology", "--metric", "max accuracy", "--format", "csv", "-o", "out.csv", "--plot", "p.svg")
    result = command("effects", *words, *sources(tables))
    assert (result.returncode, result.stdout) == (0, "")
    assert [line.split()[0] for line in result.stderr.splitlines()[-2:]] == ["out.csv", "p.svg"]
    with Path("out.csv").open(encoding="utf-8") as file:
        lines = [*csv.DictReader(file)]
    assert [(line["task"], line["value"]) for line in lines] == [
        *(("sight", name) for name in ("rmt", "dca", "resnet")),
        *(("speech", name) for name in ("rmt", "resnet", "dca")),
    ]
    picture = Path("p.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {text} -->" in picture for text in ("sight", "speech", "dca"))


ONE = ["--where", "topology = 'resnet' and task = 'sight'"]
MISTAKES: list[tuple[list[str], Kind, dict[str, Any]]] = [
    (["topolgy"], "unknown-name", {"value": "topolgy", "nearest": "topology"}),
    (
        ["depth", "--metric", "max accuracy", "--at", "flop"],
        "unknown-name",
        {"option": "cost", "value": "flop", "nearest": "flops"},
    ),
    (["depth"], "missing-rows", {"option": "--metric", "needs": "directions"}),
    (["depth", "--metric", "accuracy"], "missing-value", {"option": "column", "value": "accuracy"}),
    (["depth", "--metric", "max heads"], "unknown-name", {"option": "column", "value": "heads"}),
    (["depth", "--metric", "max accuracy", "--where", "topology = 'none'"], "missing-rows", {"needs": "complete"}),
    (["topology", "--metric", "max accuracy", *ONE], "missing-rows", {"axis": "topology", "values": 1}),
    (["topology", "--plot", "x.txt", "--metric", "max accuracy"], "unsupported", {"path": "x.txt"}),
    (["topology", "-o", "e.jsonl"], "unsupported", {"option": "--format", "value": "jsonl"}),
]


def test_mistakes_raise_user_errors(command: Command, tables: list[str]) -> None:
    with grouped() as case:
        for words, kind, fields in MISTAKES:
            with case(" ".join(words)):
                result = command("effects", *words, *sources(tables))
                assert result.stdout == ""
                result.assert_error(kind, **fields)


def test_mistakes_about_recorded_rows_raise_user_errors() -> None:
    study = nas.load(source="stdlib-lm-topologies")
    with grouped() as case:
        for axis in ("loss", "test_loss_se", "flops", "identity", "seed"):
            with case(axis), raises("unsupported", option="axis", value=axis):
                study.effects(axis)
        with case("no row"), raises("missing-rows", study=study.name):
            study.where("depth = 99").effects("topology")
        with case("no numbers"), raises("wrong-type", option="column", value="topology"):
            study.effects("topology", "topology")
        with case("no such cost"), raises("unknown-name", option="cost", value="latency_ms", nearest=None) as error:
            study.effects("topology", at="latency_ms")
        assert {"flops", "macs", "elementwise_flops"} <= set(error.value.fields["choices"])


def test_effects_of_a_loaded_study() -> None:
    effects = nas.load(source="stdlib-lm-topologies").effects("topology")
    assert [*effects] == ["stdlib-lm"]
    assert (effects["stdlib-lm"].metric, effects["stdlib-lm"].values[0]) == ("loss", "resnet")
    on_test = nas.load(source="stdlib-lm-topologies").effects("topology", "test_loss")
    assert (on_test["stdlib-lm"].metric, on_test["stdlib-lm"].direction) == ("test_loss", "min")
    (best, *_) = effects["stdlib-lm"].records()
    assert (best["value"], best["verdict"]) == ("rmt", "better")


def test_each_task_has_its_own_first_metric() -> None:
    directions_of_tasks: dict[str, dict[str, Direction]] = {
        "sight": {"accuracy": "max", "loss": "min"},
        "drawing": {"distance": "min", "loss": "min"},
    }
    rows = [
        a_row(
            task=task,
            seed=seed,
            architecture=replace(LITTLE, topology=topology),
            directions=directions,
            metrics=dict.fromkeys(directions, value + seed % 2),
        )
        for task, directions in directions_of_tasks.items()
        for seed in range(3)
        for value, topology in enumerate(("resnet", "dca", "ancre"))
    ]
    effects = Study("toys", "", rows).effects("topology")
    assert {task: effect.metric for task, effect in effects.items()} == {"sight": "accuracy", "drawing": "distance"}


def test_picture_has_four_tasks_in_a_row() -> None:
    rows = [
        a_row(task=f"task {n}", seed=seed, architecture=replace(LITTLE, topology=topology))
        for n in range(7)
        for seed in range(3)
        for topology in ("resnet", "dca")
    ]
    panels = draw_effects(Study("toys", "", rows).effects("topology")).axes
    visible = [axes for axes in panels if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in visible] == [f"task {n}" for n in range(7)]
    assert [axes.get_subplotspec().colspan.start for axes in visible] == [0, 1, 2, 3, 0, 1, 2]


def rows_of(options: dict[str, tuple[str, ...]]) -> list[Row]:
    """Three seeds of each topology of each task."""
    return [
        a_row(task=task, seed=seed, architecture=replace(LITTLE, topology=topology))
        for task, topologies in options.items()
        for topology in topologies
        for seed in range(3)
    ]


def test_labels_have_options_that_all_tasks_share() -> None:
    rows = rows_of(dict.fromkeys(("sight", "text"), ("resnet", "mhc(streams=2)")))
    for study in (Study("toys", "", rows), Study("toys", "", rows[:6])):
        axes = draw_effects(study.effects("topology")).axes[0]
        assert {label.get_text() for label in axes.get_yticklabels()} == {"resnet", "mhc(streams=2)"}


def test_options_are_shown_if_one_task_has_a_topology_twice() -> None:
    options = {"sight": ("resnet", "dca", "dca(k=2)"), "text": ("resnet", "dca(k=4)")}
    rows = rows_of(options)
    axes = draw_effects(Study("toys", "", rows).effects("topology")).axes[0]
    assert {label.get_text() for label in axes.get_yticklabels()} == {"resnet", "dca", "dca(k=2)", "dca(k=4)"}


def test_a_topology_has_one_line_in_all_panels() -> None:
    options = {"sight": ("resnet", "rmt(keys=16)", "dca", "dca(k=2)"), "text": ("resnet", "rmt", "dca(k=2)")}
    rows = rows_of(options)
    figure = draw_effects(Study("toys", "", rows).effects("topology"))
    [sight, text] = figure.axes
    assert {label.get_text() for label in sight.get_yticklabels()} == {"resnet", "rmt(...)", "dca", "dca(k=2)"}
    labels = [label.get_text() for label in sight.get_yticklabels()]
    heights = {labels[int(line.get_ydata()[0])] for line in text.lines if len(line.get_ydata()) == 1}
    assert heights == {"resnet", "rmt(...)", "dca(k=2)"}
    assert sight.get_xlabel() == "accuracy"
    assert "resnet" in figure.get_supxlabel()
    colors = {line.get_color() for panel in (sight, text) for line in panel.lines}
    assert topology_styles(["resnet", "rmt(keys=16)", "dca", "dca(k=2)"])["rmt(keys=16)"].color in colors
    assert topology_styles(["resnet", "rmt", "dca", "dca(k=2)"])["rmt"].color not in colors


def test_effects_have_costs_relative_to_the_reference(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("effects", "topology", "--from", "stdlib-lm-topologies")
    records = {record["value"]: record for record in json.loads(command(*words, "--format", "json").stdout)}
    rows = nas.load(source="stdlib-lm-topologies").rows()
    flops = {row.architecture.topology: row.costs.flops or 0 for row in rows}
    for topology, record in records.items():
        assert record["flops_ratio"] == pytest.approx(flops[topology] / flops["resnet"])
        assert record["params_ratio"] == pytest.approx(1, abs=0.001)
        assert record["time_ratio"] > 0.5
    monkeypatch.setenv("COLUMNS", "80")
    narrow = command(*words).stdout.splitlines()
    assert narrow[1].split() == ["params", "flops"]
    assert narrow[2].split() == ["topology", "difference", "low", "high", "verdict", "ratio", "ratio"]


def test_without_intervals_there_is_a_note(command: Command) -> None:
    words = ("effects", "topology", "--from", "stdlib-lm-topologies")
    all_seeds = command(*words).stdout.splitlines()
    *one_seed, note = command(*words, "--where", "seed = 0").stdout.splitlines()
    assert len(one_seed) == len(all_seeds)
    assert one_seed[0] == all_seeds[0]
    assert [line.split()[2:4] for line in one_seed[-6:]] == [["-", "-"]] * 6
    assert note.endswith(".")
