"""Printed fronts and comparisons: probabilities, candidates, notes, and columns that fit."""

import re
from math import nan

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from expect import raises
from nas.cli import printers
from nas.environment.paths import DEFAULT_STORE
from nas.report.format import Format
from nas.report.front import front_html
from nas.report.study import Study
from nas.report.tables import (
    comparison_notes,
    export_command,
    front_columns,
    front_drop_order,
    front_notes,
    front_records,
    make_console,
    print_comparison,
    print_records,
    results_command,
    summary_columns,
)
from results.records.costs import Costs
from results.stats.architecture_summary import ArchitectureSummary
from toy_rows import a_row


def summary(
    p_front: float, *, on_front: bool, held_out: int = 0, tier: int = 1, search_seeds: int = 1
) -> ArchitectureSummary:
    record = {"topology": "resnet", "flops": 1, "accuracy": 0.9, "seeds": held_out or search_seeds}
    seeds = tuple(str(seed) for seed in range(search_seeds + held_out))
    return ArchitectureSummary(seeds, record, {"accuracy": 0.9}, bool(held_out), p_front, on_front, tier)


CONTENDERS = [summary(0.9, on_front=True, held_out=2), summary(0.4, on_front=False), summary(0.05, on_front=False)]


def test_stars_mark_the_contenders_that_are_on_the_front() -> None:
    assert [(record["seeds"], record["on_front"], record["p_front"]) for record in front_records(CONTENDERS)] == [
        ("1+2", "*", 0.9),
        ("1", "", 0.4),
    ]
    assert [note.partition(":")[0] for note in front_notes(CONTENDERS)] == ["on_front", "seeds", "±", "p_front", "tier"]


def test_marks_and_posterior_means_are_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    records, columns = front_records(CONTENDERS), summary_columns(["topology", "flops"], ["accuracy", "flops"])
    print_records(make_console(), records, columns, "title", Format.MARKDOWN)
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| on_front | topology | flops | seeds | expected | p_front | tier |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| * | resnet | 1 | 1+2 | 0.9 | 0.90 | 1 |",
        "|  | resnet | 1 | 1 | 0.9 | 0.40 | 1 |",
    ]
    notebook = front_html(CONTENDERS, "title", ["topology"], lambda _: Figure())
    assert [*re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", notebook)] == [
        "on_front", "topology", "seeds", "expected", "p_front", "tier",
        "*", "resnet", "1+2", "0.9", "0.90", "1", "", "resnet", "1", "0.9", "0.40", "1",
    ]  # fmt: skip


def test_narrow_front_keeps_the_key_the_objectives_and_the_bounds() -> None:
    columns = ["on_front", "key", "topology", "depth", "heads", "params", "flops", "accuracy", "test_accuracy", "tier"]
    order = front_drop_order([*columns, "expected", "p_front", "recipe_lr"], {"accuracy", "flops", "heads"})
    assert not {"on_front", "key", "flops", "accuracy", "heads", "expected"} & {*order}
    places = {name: order.index(name) for name in ("params", "tier", "test_accuracy", "recipe_lr", "p_front", "depth")}
    assert [*places.values()] == sorted(places.values())


def flags_in(notes: list[str]) -> list[list[str]]:
    return [re.findall(r"--[\w-]+", note) for note in notes]


def test_axes_of_the_space_are_columns_after_the_shape() -> None:
    axes = ("depth", "width", "rmt.keys", "heads:2", "recipe.lr")
    columns = front_columns(axes, ["accuracy", "flops"], ["accuracy"])
    assert columns[:6] == ["key", "topology", "depth", "heads", "head_dim", "width"]
    assert columns[-1] == "recipe_lr"
    assert {"rmt.keys", "heads:2"}.isdisjoint(columns)
    drop_order = front_drop_order(columns, {"accuracy", "flops"})
    assert drop_order.index("width") < drop_order.index("depth")


def test_notes_tell_missing_reevaluations_and_the_number_of_tiers() -> None:
    *others, tiers = front_notes([summary(0.9, on_front=True, search_seeds=2, tier=2)])
    assert re.findall(r"\d", tiers) == ["2"]
    assert flags_in(others) == [[], ["--reeval-fraction"], [], []]
    assert flags_in(front_notes([summary(0.9, on_front=True)])) == [[], ["--reeval-fraction"], ["--seeds"], [], []]
    held_out = front_notes([summary(0.9, on_front=True, held_out=1, tier=2)])
    assert flags_in(held_out) == [[], [], [], [], []]
    assert held_out[-1] == tiers


def test_front_without_errors_has_no_chances() -> None:
    summaries = [summary(nan, on_front=True)]
    assert front_records(summaries)[0]["p_front"] is None
    assert flags_in(front_notes(summaries)) == [[], ["--seeds"]]


WIDE = [{"key": "abc", "accuracy": 0.51234, "accuracy_se": 0.01, "seeds": 12345678, "x|y": "a\\|b"}]


def test_markdown_table_has_all_columns_and_escaped_cells(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(make_console(), WIDE, list(WIDE[0]), "title", Format.MARKDOWN)
    assert capsys.readouterr().out.splitlines() == [
        "title",
        "",
        "| key | accuracy | seeds | x\\|y |",
        "| --- | --- | --- | --- |",
        "| abc | 0.512±0.010 | 12345678 | a\\\\\\|b |",
    ]


def comparison(topology: str, test: float, **over: object) -> dict[str, object]:
    means = {"accuracy": 0.5, "accuracy_se": 0.0123456, "test_accuracy": test, "test_accuracy_se": 0.01}
    verdict = dict.fromkeys(("difference", "low", "high", "verdict")) | over
    return {"depth": 4, "topology": topology, "params": 35266, "params_off": test, **means, **verdict}


def test_narrow_terminal_keeps_the_verdict_of_a_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = {"difference": 0.1, "low": -0.0123, "high": 0.2123, "verdict": "not distinguishable"}
    records = [comparison("resnet", 0.5), comparison("hyper(streams=2)", 0.6, **verdict)]
    print_comparison(Console(width=70), "title", records, comparison_notes(records, "test_accuracy", {}))
    title, *table, hint, note = capsys.readouterr().out.splitlines()
    assert re.findall(r"\w+_\w+", note) == ["test_accuracy"]
    assert title.startswith("title")
    assert title.endswith("depth 4, params 35266, accuracy 0.5")
    assert table[-1].split() == ["hyper(streams=2)", "0.1", "-0.0123", "0.2123", "not", "distinguishable"]
    assert "params_off, test_accuracy" in hint
    assert "COLUMNS=" in hint


def test_table_has_equal_means_with_different_errors(capsys: pytest.CaptureFixture[str]) -> None:
    records = [comparison("resnet", 0.5), comparison("dca", 0.6) | {"accuracy_se": 0.2}]
    print_comparison(Console(width=120), "title", records, [])
    out = capsys.readouterr().out
    assert out.splitlines()[0].endswith("depth 4, params 35266")
    assert "0.500±0.012" in out
    assert "0.500±0.200" in out


def test_narrow_terminal_has_fewer_columns_and_all_digits(capsys: pytest.CaptureFixture[str]) -> None:
    widths: list[tuple[int, list[str], list[str]]] = [
        (80, ["key", "accuracy", "seeds", "x|y"], []), (32, ["accuracy", "seeds"], ["key"]), (12, ["accuracy"], ["key"])
    ]  # fmt: skip
    for width, present, absent in widths:
        print_records(Console(width=width), WIDE, list(WIDE[0]), "title")
        lines = capsys.readouterr().out.splitlines()
        assert all(name in lines[1] for name in present), width
        assert "0.512±0.010" in lines[3], width
        assert ("12345678" in lines[3]) == ("seeds" in present), width
        assert [name for name in absent if name in lines[-1]] == absent, width


def test_commands_for_a_network_name_a_file_and_the_store() -> None:
    assert export_command("my study", DEFAULT_STORE, "digits-vit") == "nas export 'my study'"
    assert export_command("s", "sqlite:///x.db", "a.py:B") == "nas export s --task a.py:B --storage sqlite:///x.db"


def test_results_command_has_no_password() -> None:
    assert results_command("a b", DEFAULT_STORE) == "nas results --study 'a b'"
    assert results_command("s", "sqlite:////tmp/s.db") == "nas results --study s --storage sqlite:////tmp/s.db"
    assert "sesame" not in results_command("s", "postgresql://me:sesame@host/db")
    assert results_command("my rows.jsonl", "my rows.jsonl") == "nas results --from 'my rows.jsonl'"
    assert results_command("a,b", "a.jsonl,tables") == "nas results --from a.jsonl --from tables"


def test_error_without_its_metric_is_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(make_console(), [{"loss": 1.5, "loss_se": 0.25}], ["loss", "loss_se"], "both")
    assert "1.500±0.250" in capsys.readouterr().out
    print_records(make_console(), [{"loss": 1.5, "loss_se": 0.25}], ["loss_se"], "alone")
    assert "0.25" in capsys.readouterr().out


def test_front_of_two_tasks_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    costs = Costs(params=10, macs=5, flops=10)
    rows = [a_row(task=task, seed=seed, costs=costs) for task in ("sight", "speech") for seed in (0, 1)]
    study = Study("both", "", rows)
    for draw in (lambda: printers.print_front(study), study.plot):
        with raises("mismatch", option="task", choices=("sight", "speech")):
            draw()
    assert capsys.readouterr().out == ""  # no table of both before the error
    assert len(study.where("task = 'speech'").front()) == 1


def test_front_of_no_rows_is_an_error() -> None:
    empty = Study("s", "", [a_row()]).where("depth > 99")
    with raises("missing-rows", study="s") as error:
        printers.print_front(empty)
    assert "needs" not in error.value.fields  # no row is left, so no metric is missing
