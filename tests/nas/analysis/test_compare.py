"""Comparisons: every architecture with every seed, means with standard errors, and equal costs."""

import csv
import json
import re
import statistics
import warnings
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import nas
from command_line import Command
from expect import raises, warns
from grouped import grouped
from nas.analysis.compare import (
    candidates,
    compared_metric,
    comparison_records,
    match_cost,
    paper_overhead,
    summary,
)
from nas.costs.count import budget_counts
from nas.engine.progress import EvaluationProgress
from nas.report.plots import draw_comparison
from nas.request.job import reload_task
from nas.request.text_checks import MATCH_QUANTITIES, parse_topologies
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.block_segments import normalize_topologies
from search_spaces.support.errors import Kind, Notice
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology
from tasks.load import load_task
from toy_searches import TOY

SHAPE = Architecture(depth=1, width=4, hidden=4)
BASE = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=40)
LINES = list(csv.DictReader(files("nas.analysis").joinpath("overheads.csv").read_text(encoding="utf-8").splitlines()))


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


def test_means_leave_out_failed_seeds() -> None:
    rows = [
        row(0, 0.2),
        row(1, 0.5),
        row(2, 0.9, status="failed"),
        row(0, 0.1, architecture=Architecture(depth=2, width=4, hidden=4)),
    ]
    record = summary(SHAPE, rows, ["accuracy", "test_accuracy"])
    assert record["seeds"] == 2
    assert record["accuracy"] == pytest.approx(0.35)
    assert record["accuracy_se"] == pytest.approx(statistics.stdev([0.2, 0.5]) / 2**0.5)
    assert record["test_accuracy"] is None


def test_one_seed_has_no_error() -> None:
    assert summary(SHAPE, [row(0, 0.2)], ["accuracy"]) == {"seeds": 1, "accuracy": 0.2, "accuracy_se": None}


def test_records_compare_each_architecture_with_the_first() -> None:
    task, deeper = load_task(TOY), SHAPE.with_fields({"depth": 2})
    rows = [row(seed, 0.1 * seed, architecture=architecture) for architecture in (SHAPE, deeper) for seed in range(2)]
    first, second = comparison_records(
        task.metrics[0], [SHAPE, deeper], [{"step_ms": 2.0}, {"step_ms": 3.0}], rows, None
    )
    assert (first["relative_step"], second["relative_step"]) == (1.0, 1.5)
    assert (first["difference"], second["difference"]) == (None, 0.0)
    assert second["verdict"] == "not distinguishable"


def test_architectures_are_compared_on_test_if_every_row_has_it() -> None:
    metric, tested = load_task(TOY).metrics[0], row(0, 0.2, test={"accuracy": 0.3})
    failed = row(1, 0.0, status="failed", metrics={})
    assert compared_metric(metric, [tested, failed]) == "test_accuracy"
    assert compared_metric(metric, [tested, row(1, 0.2), failed]) == "accuracy"


def test_every_architecture_is_trained_with_every_seed(command: Command) -> None:
    words = (TOY, "--arch", "depth=1", "--arch", "depth=2", "--preset", "smoke", "--seeds", "3")
    result = command("compare", *words, "--format", "json")
    assert result.returncode == 0
    rows = json.loads(result.stdout)
    assert sorted((row["depth"], row["seed"]) for row in rows) == [(d, s) for d in (1, 2) for s in range(3)]
    assert not list(Path("nas-runs", "unfinished").glob("*"))  # nothing to resume
    assert "±" in command("compare", *words).stdout  # a terminal gets means and errors
    title, *table = command("compare", TOY, "--preset", "smoke").stdout.splitlines()
    assert "seeds" in title
    assert "depth" in " ".join(table)
    assert "blocks" not in " ".join(table)  # no empty column
    (record,) = json.loads(command("compare", TOY, "--preset", "smoke", "--format", "json").stdout)
    assert (record["depth"], record["heads"]) == (4, 4)


def test_an_interrupted_comparison_resumes(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("compare", TOY, "--preset", "smoke", "--seeds", "2", "--format", "json")
    completions: list[Row] = []

    def interrupt(progress: EvaluationProgress, row: Row) -> None:
        completions.append(row)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EvaluationProgress, "add", interrupt)
        assert command(*words).returncode == 130
    rows = json.loads(command(*words).stdout)
    times = [row["wall_s"] for row in rows if row["seed"] == completions[0].seed]
    assert times == [completions[0].provenance["wall_s"]]  # not trained again


def test_failures_are_reported_and_leave_no_row(command: Command) -> None:
    stumbling = TOY.replace("Toy", "Stumbling")
    result = command("compare", stumbling, "--arch", "depth=1", "--preset", "smoke", "--seeds", "1")
    assert result.returncode == 2
    assert "1 of 1" in result.stderr.splitlines()[-1]
    assert not list(Path("nas-runs").glob("**/row.json"))


def test_equal_architectures_are_compared_once() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", Notice)
        assert len(nas.compare("digits-vit", arch=["hidden=8", "hidden=9"], match="params").records) == 1
    assert len(nas.compare("digits-vit", arch=["hidden=8", "hidden=8"]).records) == 1


def test_a_size_that_cannot_be_matched_gives_a_notice() -> None:
    with warns("mismatch", option="--match", value="params") as notices:
        nas.compare("digits-vit", arch=["depth=1,hidden=8", "depth=12"], match="params")
    assert "depth=12," in notices[0].fields["architecture"]
    assert abs(notices[0].fields["difference"]) > 0.005


def test_curves_are_written_to_the_end_of_each_training(command: Command) -> None:
    words = "--preset smoke --set epochs=0,steps=6,reports=3 --seeds 2 --curves curves.csv --format json".split()
    result = command("compare", "digits-vit", "--arch", "depth=1,width=8,heads=1,head_dim=8,hidden=8", *words)
    assert result.returncode == 0
    with Path("curves.csv").open() as file:
        points = list(csv.DictReader(file))
    for row in json.loads(result.stdout):
        steps = [int(float(point["step"])) for point in points if int(point["seed"]) == row["seed"]]
        assert steps == sorted(steps)
        assert steps[-1] == row["steps"]
        assert float(points[-1]["accuracy"]) > 0


def test_comparison_is_drawn_to_a_file(command: Command) -> None:
    words = (TOY, "--arch", "depth=1", "--arch", "depth=2", "--preset", "smoke", "--plot", "differences.png")
    result = command("compare", *words, "--seeds", "2")
    assert result.returncode == 0, result.stderr
    assert Path("differences.png").read_bytes().startswith(b"\x89PNG")
    assert "differences.png" in result.stderr
    Path("differences.png").unlink()
    command("compare", *words).assert_error("missing-value", option="--seeds", value=0, needed_by="--plot")
    assert not Path("differences.png").exists()


def test_picture_of_a_comparison_has_differences_and_labels_of_what_differs() -> None:
    wider, dca = SHAPE.with_fields({"width": 8}), SHAPE.with_fields({"topology": "dca", "hidden": 3})
    shapes = [SHAPE, wider, dca, dca.with_fields({"hidden": 2})]
    verdicts = [{"difference": None}, {"difference": 0.2, "low": 0.1, "high": 0.4}, {"difference": -0.1, "low": None}]
    records = [asdict(shape) | verdict for shape, verdict in zip(shapes, verdicts, strict=False)]
    axes = draw_comparison(records, "test_accuracy", "title").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "resnet, width 4",
        "resnet, width 8",
        "dca, width 4",
    ]
    assert [bars.lines[0].get_xdata()[0] for bars in axes.containers] == [0.0, 0.2, -0.1]
    ((low, high),) = [bars.lines[2][0].get_segments()[0][:, 0] for bars in axes.containers if bars.has_xerr]
    assert (low, high) == pytest.approx((0.1, 0.4))
    assert axes.get_xlabel().startswith("test_accuracy minus that of resnet")
    records = [asdict(shape) | {"difference": None} for shape in shapes]
    labels = [label.get_text() for label in draw_comparison(records, "loss", "title").axes[0].get_yticklabels()]
    assert labels[2:] == ["dca, width 4, hidden 3", "dca, width 4, hidden 2"]
    labels = [label.get_text() for label in draw_comparison(records[:1], "loss", "title").axes[0].get_yticklabels()]
    assert labels == ["resnet"]


def test_comparison_without_seeds_has_costs_alone() -> None:
    records = nas.compare("digits-vit", topology="resnet,dca(k=2),hyper", match="params").records
    assert [record["topology"] for record in records] == ["resnet", "dca(k=2)", "hyper"]
    assert all(abs(record["params_off"]) <= 0.005 for record in records)
    assert records[1]["topology_params"] > 0


def test_measured_times_are_compared_with_those_of_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.costs.profile.timing.WARM_UP_S", 0.0)
    monkeypatch.setattr("nas.costs.profile.timing.MEASURE_S", 0.0)
    small = "depth=1,width=8,heads=1,head_dim=8,hidden=8"
    comparison = nas.compare("digits-vit", preset="smoke", arch=small, topology="resnet,dca(k=2)", profile=True)
    plain, dca = comparison.records
    assert plain["relative_step"] == 1
    assert dca["relative_step"] == pytest.approx(dca["step_ms"] / plain["step_ms"])
    assert (plain["printed_step"], dca["printed_step"]) == (None, 1.523)
    assert plain["latency_ms"] > 0


def test_all_means_every_topology_of_the_task() -> None:
    records = nas.compare("digits-vit", arch="depth=1,width=16,heads=2,head_dim=8", topology="all").records
    assert [record["topology"] for record in records] == ["resnet", *(n for n in TOPOLOGIES.names() if n != "resnet")]
    with warns("skipped", topology="svformer"):
        architectures = candidates(reload_task("goal-point-maze", None), [], "all", "params", "smoke")
    assert {"ancre", "mhc"} <= {architecture.topology for architecture in architectures}


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"topology": "resnet,dac"}, "unknown-name", {"option": "topology", "value": "dac", "nearest": "dca"}),
    ({"topology": ","}, "missing-value", {"option": "--topology"}),
    ({"match": "param"}, "unknown-name", {"option": "--match", "value": "param", "nearest": "params"}),
    ({"preset": "prox"}, "unknown-name", {"option": "preset", "nearest": "proxy"}),
    ({"arch": "dept=2"}, "unknown-name", {"value": "dept", "nearest": "depth"}),
]


def test_mistakes_raise_user_errors(command: Command) -> None:
    with grouped() as case:
        for arguments, kind, fields in MISTAKES:
            with case(str(arguments)), raises(kind, **fields):
                nas.compare("digits-vit", **arguments)
        for words, kind, option in (
            (("--output", "rows.txt"), "unsupported", "--output"),
            (("--topology", ","), "missing-value", "--topology"),
            (("--curves", "curves.csv"), "missing-value", "--seeds"),
        ):
            with case(" ".join(words)):
                command("compare", "digits-vit", *words).assert_error(kind, option=option)


def test_topologies_are_separated_at_the_top_level_only() -> None:
    assert parse_topologies(" resnet, all ,dca(k=1, fused=true)") == ["resnet", "all", "dca(k=1, fused=true)"]


def linear(architecture: Architecture) -> int:
    return cost_of(architecture.hidden)


def cost_of(hidden: int) -> int:
    return 7 * hidden + 100


def test_match_cost_finds_the_nearest_number_of_hidden_features() -> None:
    costs = [cost_of(hidden) for hidden in range(1, 150_000)]
    for target in (107, 108, 110, 111, 114, 240, 1000, 10**6):
        match = match_cost(BASE, target, linear)
        assert abs(linear(match) - target) == min(abs(cost - target) for cost in costs), target
        assert replace(match, hidden=40) == BASE


def test_a_target_out_of_reach_gives_the_smallest_or_largest_network() -> None:
    assert match_cost(BASE, 3, linear).hidden == 1
    assert match_cost(BASE, 10**12, linear).hidden == 2**24


@pytest.mark.parametrize("topology", ["dca(k=2)", "hyper", "rmt(keys=8)"])
def test_networks_of_a_task_are_matched_within_half_a_percent(topology: str) -> None:
    task = load_task("digits-vit", None)
    base_counts = budget_counts(task, task.base)
    for quantity in MATCH_QUANTITIES:
        target, architecture = base_counts[quantity], replace(task.base, topology=topology)
        match = match_cost(
            architecture, target, lambda candidate, quantity=quantity: budget_counts(task, candidate)[quantity]
        )
        assert budget_counts(task, match)[quantity] == pytest.approx(target, rel=0.005), quantity


def test_each_overhead_is_of_one_topology_and_follows_from_its_source() -> None:
    topologies = [line["topology"] for line in LINES]
    assert len(set(topologies)) == len(topologies)
    with grouped() as case:
        for line in LINES:
            with case(line["topology"]):
                resolve_topology(line["topology"])
                assert normalize_topologies(line["topology"]) == line["topology"]
                assert paper_overhead(line["topology"]) == float(line["step_over_resnet"])
                numbers = [float(number) for number in re.findall(r"\d+\.\d+", line["source"])]
                if numbers:  # rates or seconds: either way the larger over the smaller
                    assert max(numbers) / min(numbers) == pytest.approx(float(line["step_over_resnet"]), abs=6e-4)
    assert paper_overhead("grn-v3") is None  # no paper measures it
