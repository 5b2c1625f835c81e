"""`nas effects`: tables a task, whether tasks agree, a picture, and what it refuses."""

import csv
import io
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import nas
from nas.cli import main
from nas.colours import looks
from nas.picture import draw_effects
from nas.study import Study
from own_process import in_own_process
from results.row import Direction
from search_spaces.errors import UserError
from toy_rows import LITTLE, a_row

TASKS = {"sight": {"resnet": 0.5, "dca": 0.6, "rmt": 0.8}, "speech": {"resnet": 0.2, "dca": 0.1, "rmt": 0.4}}


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    """Two tasks' tables of columns alone: three topologies at two depths."""
    files = []
    for task, measured in TASKS.items():
        path = tmp_path / f"{task}.csv"
        lines = [
            f"{task},complete,{topology},{depth},0,{value + depth},{depth * 100}"
            for topology, value in measured.items()
            for depth in (1, 2)
        ]
        path.write_text("\n".join(["task,status,topology,depth,seed,accuracy,flops", *lines]), encoding="utf-8")
        files.append(str(path))
    return files


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: list[str], *words: str
) -> tuple[int, str, str]:
    sources = [word for file in files for word in ("--from", file)]
    monkeypatch.setattr(sys, "argv", ["nas", "effects", *words, *sources])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.out, printed.err


def test_each_task_has_its_table_and_two_agree_or_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tables: list[str]
) -> None:
    _, out, _ = run(monkeypatch, capsys, tables, "topology", "--metric", "max accuracy")
    assert "sight: accuracy of each topology over resnet, of equal shape" in out
    lines = [line.split() for line in out.splitlines()]
    rmt = next(line for line in lines if line[:1] == ["rmt"])
    assert (rmt[1], rmt[-2:]) == ("0.3", ["2", "2.3"])  # what is dropped first stands last
    (taus,) = [line for line in lines if line[:2] == ["sight", "speech"]]
    assert taus[2:4] == ["3", "0.3333"]


def test_a_file_has_a_line_a_value_of_each_task(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tables: list[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "out.csv")
    words = ("topology", "--metric", "max accuracy", "--format", "csv", "-o", out, "--plot", str(tmp_path / "p.svg"))
    status, printed, said = run(monkeypatch, capsys, tables, *words)
    assert (status, printed) == (0, "")
    assert said.splitlines()[-2:] == [f"{out} is written", f"{tmp_path}/p.svg is written"]
    lines = [*csv.DictReader(io.StringIO(Path(out).read_text(encoding="utf-8")))]
    assert [(line["task"], line["value"]) for line in lines] == [
        *(("sight", name) for name in ("rmt", "dca", "resnet")),
        *(("speech", name) for name in ("rmt", "resnet", "dca")),
    ]
    picture = (tmp_path / "p.svg").read_text(encoding="utf-8")
    assert all(
        f"<!-- {text} -->" in picture
        for text in ("sight", "speech", "dca", "accuracy over resnet, better to the right")
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["topolgy"], "unknown column 'topolgy'. Did you mean 'topology'?"),
        (["depth", "--metric", "max accuracy", "--at", "flop"], "unknown cost 'flop'. Did you mean 'flops'?"),
        (["depth"], "has no row that says what its metrics are"),
        (["depth", "--metric", "accuracy"], "whether 'accuracy' is to be large or small is not known"),
        (["depth", "--metric", "max heads"], "unknown column 'heads'"),
        (["depth", "--metric", "max accuracy", "--where", "topology = 'none'"], "has no complete row"),
        (
            ["topology", "--metric", "max accuracy", "--where", "topology = 'resnet' and task = 'sight'"],
            "of rows with 'accuracy' all have topology = 'resnet': there is nothing to hold it against. Give rows that",
        ),
        (["topology", "--plot", "x.txt", "--metric", "max accuracy"], "a picture must end in"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tables: list[str],
) -> None:
    status, out, err = run(monkeypatch, capsys, tables, *words)
    assert (status, out) == (2, "")
    assert says in err.splitlines()[-1]


def test_of_python_a_task_has_its_effects() -> None:
    found = nas.load(source="stdlib-lm-topologies").effects("topology")
    assert [*found] == ["stdlib-lm"]
    assert (found["stdlib-lm"].metric, found["stdlib-lm"].values[0]) == ("loss", "resnet")
    on_test = nas.load(source="stdlib-lm-topologies").effects("topology", "test_loss")
    assert (on_test["stdlib-lm"].metric, on_test["stdlib-lm"].direction) == ("test_loss", "min")
    (best, *_) = found["stdlib-lm"].records()
    assert (best["value"], best["than"]) == ("rmt", "better")


def test_each_task_is_judged_by_its_own_first_metric() -> None:
    of_task: dict[str, dict[str, Direction]] = {
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
        for task, directions in of_task.items()
        for seed in range(3)
        for value, topology in enumerate(("resnet", "dca", "ancre"))
    ]
    found = Study("toys", "", rows).effects("topology")
    assert {task: one.metric for task, one in found.items()} == {"sight": "accuracy", "drawing": "distance"}


@pytest.mark.parametrize(
    ("axis", "where", "says"),
    [
        ("loss", None, "an axis tells architectures apart, and 'loss' is none. Ask topology, depth or recipe_lr."),
        ("test_loss_se", None, "'test_loss_se' is none"),
        ("flops", None, "'flops' is none"),
        ("identity", None, "'identity' is none"),
        ("seed", None, "'seed' is none"),
        ("topology", "depth = 99", "there is no row to be held against another. Ask others, or leave --where out."),
    ],
)
def test_what_cannot_be_asked_of_rows_is_a_line(axis: str, where: str | None, says: str) -> None:
    study = nas.load(source="stdlib-lm-topologies")
    with pytest.raises(UserError, match=re.escape(says)):
        (study if where is None else study.where(where)).effects(axis)


def test_seven_tasks_are_drawn_four_a_line() -> None:
    rows = [
        a_row(task=f"task {n}", seed=seed, architecture=replace(LITTLE, topology=topology))
        for n in range(7)
        for seed in range(3)
        for topology in ("resnet", "dca")
    ]
    panels = draw_effects(Study("toys", "", rows).effects("topology")).axes
    shown = [axes for axes in panels if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == [f"task {n}" for n in range(7)]
    assert [axes.get_subplotspec().colspan.start for axes in shown] == [0, 1, 2, 3, 0, 1, 2]


def test_a_topology_that_all_tasks_have_alike_keeps_its_options() -> None:
    rows = [
        a_row(task=task, seed=seed, architecture=replace(LITTLE, topology=topology))
        for task in ("sight", "text")
        for topology in ("resnet", "mhc(streams=2)")
        for seed in range(3)
    ]
    for found in (Study("toys", "", rows), Study("toys", "", rows[:6])):
        axes = draw_effects(found.effects("topology")).axes[0]
        assert {label.get_text() for label in axes.get_yticklabels()} == {"resnet", "mhc(streams=2)"}


def test_a_topology_that_one_task_has_twice_keeps_its_options_on_all() -> None:
    options = {"sight": ("resnet", "dca", "dca(k=2)"), "text": ("resnet", "dca(k=4)")}
    rows = [
        a_row(task=task, seed=seed, architecture=replace(LITTLE, topology=topology))
        for task, topologies in options.items()
        for topology in topologies
        for seed in range(3)
    ]
    axes = draw_effects(Study("toys", "", rows).effects("topology")).axes[0]
    assert {label.get_text() for label in axes.get_yticklabels()} == {"resnet", "dca", "dca(k=2)", "dca(k=4)"}


def test_a_topology_stands_on_one_line_of_all_panels_whatever_its_options() -> None:
    options = {"sight": ("resnet", "rmt(keys=16)", "dca", "dca(k=2)"), "text": ("resnet", "rmt", "dca(k=2)")}
    rows = [
        a_row(task=task, seed=seed, architecture=replace(LITTLE, topology=topology))
        for task, topologies in options.items()
        for topology in topologies
        for seed in range(3)
    ]
    [sight, text] = draw_effects(Study("toys", "", rows).effects("topology")).axes
    assert {label.get_text() for label in sight.get_yticklabels()} == {"resnet", "rmt(...)", "dca", "dca(k=2)"}
    labels = [label.get_text() for label in sight.get_yticklabels()]
    heights = {labels[int(line.get_ydata()[0])] for line in text.lines if len(line.get_ydata()) == 1}
    assert heights == {"resnet", "rmt(...)", "dca(k=2)"}
    assert sight.get_xlabel() == "accuracy over resnet, better to the right"
    drawn = {line.get_color() for panel in (sight, text) for line in panel.lines}
    assert looks(["resnet", "rmt(keys=16)", "dca", "dca(k=2)"])["rmt(keys=16)"].colour in drawn
    assert looks(["resnet", "rmt", "dca", "dca(k=2)"])["rmt"].colour not in drawn


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--metric", "topology"], "column 'topology' has no numbers, to be large or small. Ask a metric or a cost."),
        (
            ["--at", "latency_ms"],
            "unknown cost 'latency_ms'. Choose from: elementwise_flops, embedding_params, flops, macs, ",
        ),
        (["--at", "flop"], "unknown cost 'flop'. Did you mean 'flops'?"),
    ],
)
def test_options_that_cannot_be_are_a_line(
    options: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(monkeypatch, capsys, ["stdlib-lm-topologies"], "topology", *options)
    assert code == 2
    assert says in err


def test_where_nothing_was_measured_twice_it_says_that_there_are_no_intervals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "no intervals: as much is asked as was measured. Give rows of more shapes, or of one with more seeds."
    _, alone, _ = run(monkeypatch, capsys, ["stdlib-lm-topologies"], "topology", "--where", "seed = 0")
    _, all_seeds, _ = run(monkeypatch, capsys, ["stdlib-lm-topologies"], "topology")
    assert told in alone
    assert told not in all_seeds


def test_json_lines_are_refused_before_the_work(tmp_path: Path) -> None:
    done = in_own_process("effects", "topology", "--from", "tables", "-o", "e.jsonl", cwd=tmp_path)
    said = "nas: JSON Lines are of rows, and there are none. Give --format csv, json or parquet.\n"
    assert (done.returncode, done.stderr) == (2, said)
