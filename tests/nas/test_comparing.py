"""Comparisons: every architecture with every seed, means with errors, and equal sizes where they are asked for."""

import csv
import json
import re
import statistics
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from nas.asked_text import MATCHED, topologies_named
from nas.cli import main
from nas.comparing import candidates, matched, printed_overhead, side_by_side, summary
from nas.counting import cheap_counts
from nas.jobs import fresh_task
from nas.watching import Evaluations
from results.row import Row
from search_spaces.architecture import Architecture
from search_spaces.errors import Notice
from search_spaces.runs import tidy
from search_spaces.topologies.registry import TOPOLOGIES, load
from tasks.load import load_task

TOY = f"{Path(__file__).parent / 'toy_tasks.py'}:Toy"
SHAPE = Architecture(depth=1, width=4, hidden=4)
SIZED = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=40)
LINES = list(csv.DictReader(files("nas").joinpath("overheads.csv").read_text(encoding="utf-8").splitlines()))


def row(seed: int, accuracy: float, **changes: object) -> Row:
    return Row(
        **{
            "task": "toy",
            "task_version": 1,
            "architecture": SHAPE,
            "seed": seed,
            "preset": "smoke",
            "status": "complete",
            "metrics": {"accuracy": accuracy},
            **changes,
        }  # type: ignore[arg-type]  # fields of mixed types
    )


def test_a_mean_is_over_the_seeds_that_were_completed() -> None:
    rows = [
        row(0, 0.2),
        row(1, 0.5),
        row(2, 0.9, status="failed"),
        row(0, 0.1, architecture=Architecture(depth=2, width=4, hidden=4)),
    ]
    found = summary(SHAPE, rows, ["accuracy", "test_accuracy"])
    assert found["seeds"] == 2
    assert found["accuracy"] == pytest.approx(0.35)
    assert found["accuracy_se"] == pytest.approx(statistics.stdev([0.2, 0.5]) / 2**0.5)
    assert found["test_accuracy"] is None


def test_one_seed_has_no_error() -> None:
    assert summary(SHAPE, [row(0, 0.2)], ["accuracy"]) == {"seeds": 1, "accuracy": 0.2, "accuracy_se": None}


def test_times_and_trainings_stand_side_by_side() -> None:
    task, deeper = load_task(TOY), SHAPE.changed({"depth": 2})
    rows = [row(seed, 0.1 * seed, architecture=one) for one in (SHAPE, deeper) for seed in range(2)]
    first, second = side_by_side(task.metrics[0], [SHAPE, deeper], [{"step_ms": 2.0}, {"step_ms": 3.0}], rows, None)
    assert (first["step_over_first"], second["step_over_first"]) == (1.0, 1.5)
    assert (first["over_first"], second["over_first"]) == (None, 0.0)
    assert second["than_first"] == "not distinguishable"


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Run `nas compare` in an empty folder: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["nas", "compare", *words])
        try:
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        return status, *capsys.readouterr()

    return run


def test_every_architecture_is_trained_with_every_seed(compare, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    words = (TOY, "--arch", "depth=1", "--arch", "depth=2", "--preset", "smoke", "--seeds", "3", "--format", "json")
    status, out, _ = compare(*words)
    assert status == 0
    rows = json.loads(out)
    assert sorted((one["depth"], one["seed"]) for one in rows) == [(d, s) for d in (1, 2) for s in range(3)]
    assert not list((tmp_path / "nas-runs" / "unfinished").glob("*"))  # nothing to go on from


def test_an_interrupted_comparison_goes_on(compare, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    words = (TOY, "--preset", "smoke", "--seeds", "2", "--format", "json")
    seen: list[Row] = []

    def interrupt(shown: Evaluations, row: Row) -> None:
        seen.append(row)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Evaluations, "add", interrupt)
        assert compare(*words)[0] == 130
    rows = json.loads(compare(*words)[1])
    times = [one["wall_s"] for one in rows if one["seed"] == seen[0].seed]
    assert times == [seen[0].provenance["wall_s"]]  # not trained again


def test_failures_are_said_and_tried_again(compare) -> None:  # type: ignore[no-untyped-def]
    words = (TOY.replace("Toy", "Stumbling"), "--arch", "depth=1", "--preset", "smoke", "--seeds", "1")
    status, _, err = compare(*words)
    assert status == 2
    assert "1 of 1 evaluations failed" in err.splitlines()[-1]
    assert not list(Path("nas-runs").glob("**/row.json"))


def test_equal_architectures_are_trained_once(compare) -> None:  # type: ignore[no-untyped-def]
    words = ("--arch", "hidden=8", "--arch", "hidden=9", "--match", "params", "--format", "json")
    _, out, err = compare("digits-vit", *words)
    assert len(json.loads(out)) == 1
    assert "comes no nearer than" not in err
    twice = compare("digits-vit", "--arch", "hidden=8", "--arch", "hidden=8", "--format", "json")[1]
    assert len(json.loads(twice)) == 1


def test_a_match_that_cannot_be_is_said(compare) -> None:  # type: ignore[no-untyped-def]
    status, _, err = compare("digits-vit", "--arch", "depth=1,hidden=8", "--arch", "depth=12", "--match", "params")
    assert status == 0
    assert "comes no nearer than" in err


def test_curves_are_written_with_their_ends(compare, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    words = ("--preset", "smoke", "--seeds", "2", "--curves", "curves.csv", "--format", "json")
    status, out, _ = compare("digits-vit", "--arch", "depth=1,width=8,heads=1,head_dim=8,hidden=8", *words)
    assert status == 0
    with (tmp_path / "curves.csv").open() as file:
        points = list(csv.DictReader(file))
    for row in json.loads(out):
        steps = [int(float(one["step"])) for one in points if int(one["seed"]) == row["seed"]]
        assert steps == sorted(steps)
        assert steps[-1] == row["steps"]
        assert float(points[-1]["accuracy"]) > 0


def test_without_seeds_costs_are_set_side_by_side(compare) -> None:  # type: ignore[no-untyped-def]
    words = ("digits-vit", "--topology", "resnet,dca(k=2),hyper", "--match", "params", "--format", "json")
    status, out, _ = compare(*words)
    assert status == 0
    records = json.loads(out)
    assert [one["topology"] for one in records] == ["resnet", "dca(k=2)", records[2]["topology"]]
    assert all(abs(one["params_off"]) <= 0.005 for one in records)
    assert records[1]["topology_params"] > 0


def test_times_and_memory_stand_beside_what_papers_print(compare) -> None:  # type: ignore[no-untyped-def]
    words = ("--arch", "depth=1,width=8,heads=1,head_dim=8,hidden=8", "--topology", "resnet,dca(k=2)", "--profile")
    status, out, _ = compare("digits-vit", "--preset", "smoke", *words, "--format", "json")
    assert status == 0
    plain, dca = json.loads(out)
    assert plain["step_over_first"] == 1
    assert dca["step_over_first"] == pytest.approx(dca["step_ms"] / plain["step_ms"])
    assert (plain["printed_step"], dca["printed_step"]) == (None, 1.523)
    assert plain["latency_ms"] > 0


def test_all_are_those_that_are_installed_and_others_are_named(compare) -> None:  # type: ignore[no-untyped-def]
    status, out, _ = compare("digits-vit", "--topology", "all", "--seeds", "0", "--format", "json")
    assert status == 0
    shown = [one["topology"] for one in json.loads(out)]
    assert shown == ["resnet", *(name for name in TOPOLOGIES.names() if name != "resnet")]
    with pytest.warns(Notice, match=r"svformer is left out: .* without heads\. Take a transformer's task\.$"):
        found = candidates(fresh_task("goal-point-maze", None), [], "all", "params", "smoke")
    assert {"ancre", "mhc"} <= {one.topology for one in found}


def test_one_architecture_has_all_for_itself_and_no_empty_column(compare) -> None:  # type: ignore[no-untyped-def]
    status, out, _ = compare(TOY, "--preset", "smoke")
    title, *table = out.splitlines()
    assert status == 0
    assert title.endswith("no seeds")
    assert "depth" in " ".join(table)
    assert "blocks" not in " ".join(table)


def test_a_terminal_gets_means_and_errors(compare) -> None:  # type: ignore[no-untyped-def]
    status, out, _ = compare(TOY, "--preset", "smoke", "--seeds", "2")
    assert status == 0
    assert "±" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["digits-vit", "--topology", "resnet,dac"], "dca"),
        (["digits-vit", "--match", "param"], "params"),
        (["digits-vit", "--preset", "prox"], "proxy"),
        (["digits-vit", "--arch", "dept=2"], "depth"),
        (["digits-vit", "--output", "rows.txt"], "--format"),
        (["digits-vit", "--topology", ","], "given nothing"),
        (["digits-vit", "--curves", "curves.csv"], "--seeds"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], says: str, compare) -> None:  # type: ignore[no-untyped-def]
    status, _, err = compare(*words)
    assert status == 2
    assert says in err
    assert len(err.strip().splitlines()) == 1


def test_topologies_are_named_with_or_without_spaces() -> None:
    assert topologies_named(" resnet, all ,dca(k=1, fused=true)") == ["resnet", "all", "dca(k=1, fused=true)"]


def linear(architecture: Architecture) -> int:
    return cost_of(architecture.hidden)


def cost_of(hidden: int) -> int:
    return 7 * hidden + 100


@pytest.mark.parametrize("target", [107, 108, 110, 111, 114, 240, 1000, 10**6])
def test_no_other_number_of_hidden_features_comes_nearer(target: int) -> None:
    found = matched(SIZED, target, linear)
    best = min(abs(cost_of(hidden) - target) for hidden in range(1, 150_000))
    assert abs(linear(found) - target) == best
    assert replace(found, hidden=40) == SIZED


def test_what_cannot_be_reached_is_approached() -> None:
    assert matched(SIZED, 3, linear).hidden == 1
    assert matched(SIZED, 10**12, linear).hidden == 2**24


@pytest.mark.parametrize("quantity", MATCHED)
@pytest.mark.parametrize("topology", ["dca(k=2)", "hyper", "rmt(keys=8)"])
def test_networks_of_a_task_are_matched_within_half_a_percent(topology: str, quantity: str) -> None:
    task = load_task("digits-vit", None)
    target = cheap_counts(task, task.base)[quantity]
    found = matched(replace(task.base, topology=topology), target, lambda one: cheap_counts(task, one)[quantity])
    assert cheap_counts(task, found)[quantity] == pytest.approx(target, rel=0.005)


@pytest.mark.parametrize("line", LINES, ids=[line["topology"] for line in LINES])
def test_an_overhead_is_of_a_topology_and_follows_from_its_source(line: dict[str, str]) -> None:
    load(line["topology"])
    assert tidy(line["topology"]) == line["topology"]
    assert [one["topology"] for one in LINES].count(line["topology"]) == 1
    assert printed_overhead(line["topology"]) == float(line["step_over_resnet"])
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", line["source"])]
    if numbers:  # rates or seconds: either way the larger over the smaller
        assert max(numbers) / min(numbers) == pytest.approx(float(line["step_over_resnet"]), abs=6e-4)


def test_what_no_paper_prints_is_none() -> None:
    assert printed_overhead("grn-v3") is None
