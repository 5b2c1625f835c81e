"""The page of benchmarks equals what the stored runs give, and a run with a missing field is refused."""

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report
from benchmarks.__main__ import main
from benchmarks.form import Figure
from benchmarks.form import main as measure
from benchmarks.listing import benchmarks
from grouped import grouped

RUN = {
    "benchmark": "overhead",
    "source": "measured",
    "date": "2026-11-01",
    "form": "full",
    "machine": {"cpu": "A processor", "cores": 2, "gpu": None, "python": "3.11.7", "torch": "2.14.1"},
    "figures": {
        "search_over_bare": {"value": 1.25, "unit": "ratio", "better": "lower", "target": 1.1, "peers": {"bare": 1.0}},
        "trials": {"value": 103500, "unit": "a minute", "better": "higher", "target": 10000, "peers": {}},
        "unmeasured": {"value": None, "unit": "s", "better": "lower", "target": 2, "peers": {}},
        "untargeted": {"value": 3.0, "unit": "s", "better": "lower", "target": None, "peers": {}},
    },
}


def stored(folder: Path, run: Mapping[str, Any], name: str = "overhead.json") -> Path:
    """Write a run to a file."""
    path = folder / name
    path.write_text(json.dumps(run))
    return path


def test_page_is_what_the_stored_runs_give() -> None:
    runs = report.read_runs()
    assert {run.benchmark for run in runs} == set(benchmarks())
    assert report.PAGE.read_text() == report.page(runs)


def test_page_is_short() -> None:
    lines = report.PAGE.read_text().splitlines()
    assert len(lines) <= 150
    assert not [line for line in lines if len(line) > 120 and not line.startswith("|")]


def test_changed_value_changes_the_page(tmp_path: Path) -> None:
    for path in report.RESULTS.glob("*.json"):
        shutil.copy(path, tmp_path)
    assert report.page(report.read_runs(tmp_path)) == report.PAGE.read_text()
    record = json.loads((tmp_path / "listops.json").read_text())
    record["figures"]["published_lists_seconds"]["value"] += 1
    stored(tmp_path, record, "listops.json")
    assert report.page(report.read_runs(tmp_path)) != report.PAGE.read_text()


def test_rows_have_values_targets_and_peers(tmp_path: Path) -> None:
    run = report.read_run(stored(tmp_path, RUN))
    machine = "A processor, 2 cores, torch 2.14.1 | 2026-11-01"
    assert list(report.rows(run)) == [
        f"| `overhead` | `search_over_bare` | **1.25** | <= 1.1 | bare 1 | {machine} |",
        f"| `overhead` | `trials` | 103,500 a minute | >= 10,000 |  | {machine} |",
        f"| `overhead` | `unmeasured` | not measured | <= 2 |  | {machine} |",
    ]
    page = report.page([run])
    assert "`untargeted`" not in page
    assert report.WHY_MISSED["overhead"] in page
    assert report.WHY_MISSED["counting"] not in page


def test_many_figures_that_meet_one_target_are_one_row(tmp_path: Path) -> None:
    figure = {"unit": "x resnet", "better": "lower", "target": 1.5, "peers": {}}
    values = [1 + number / 20 for number in range(report.MANY + 4)]  # the last is 1.55
    figures = {f"memory_{number}_cpu": {**figure, "value": value} for number, value in enumerate(values)}
    first, last = report.rows(report.read_run(stored(tmp_path, {**RUN, "figures": figures})))
    assert "| `memory_*_cpu` | 1 to 1.5 x resnet | <= 1.5 | 11 figures |" in first
    assert "| `memory_11_cpu` | **1.55 x resnet** | <= 1.5 |  |" in last


def test_transcribed_and_partial_runs_are_marked(tmp_path: Path) -> None:
    gpu = {**RUN["machine"], "cpu": None, "cores": None, "gpu": "A GPU"}  # type: ignore[dict-item]
    path = stored(tmp_path, {**RUN, "source": "transcribed", "form": "part", "machine": gpu, "note": "By hand."})
    run = report.read_run(path)
    assert report.row(run, "search_over_bare").endswith("| A GPU, torch 2.14.1 | 2026-11-01* (part) |")
    assert "By hand." in "".join(report.show([run], "overhead"))


def without_one_field(record: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path of each field with the record that lacks it."""
    for name, value in record.items():
        yield name, {other: record[other] for other in record if other != name}
        if isinstance(value, Mapping) and name not in ("figures", "peers"):
            for inner, less in without_one_field(value):
                yield f"{name}.{inner}", {**record, name: less}
    for name, figure in record.get("figures", {}).items():
        for inner, less in without_one_field(figure):
            yield f"figures.{name}.{inner}", {**record, "figures": {**record["figures"], name: less}}


def test_run_with_a_missing_field_is_refused(tmp_path: Path) -> None:
    cases = dict(without_one_field(RUN))
    assert {"date", "machine.cpu", "figures.trials.target"} <= set(cases)
    with grouped() as case:
        for field, record in cases.items():
            with case(field):
                path = stored(tmp_path, record)
                with pytest.raises(ValueError, match="missing") as error:
                    report.read_run(path)
                assert str(error.value) == f"{path}: the field {field} is missing"


def test_run_with_a_wrong_field_is_refused(tmp_path: Path) -> None:
    with grouped() as case:
        for field, value in (("source", "invented"), ("form", "quick"), ("seconds", 3)):
            with case(field):
                path = stored(tmp_path, {**RUN, field: value})
                with pytest.raises(ValueError, match=field):
                    report.read_run(path)
        for name in ("overheads.json", "counting.json"):
            with case(name):
                path = stored(tmp_path, RUN, name)
                with pytest.raises(ValueError, match=re.escape(str(path))):
                    report.read_run(path)


def test_json_of_a_benchmark_can_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, figures = tmp_path / "overhead-here.json", {"figure": Figure(1.0, "s", "lower", 2.0, {"peer": 3.0})}
    monkeypatch.setattr(sys, "argv", ["overhead", "--json"])
    measure("overhead", lambda quick: figures)
    path.write_text(capsys.readouterr().out)
    run = report.read_run(path)
    assert (run.benchmark, run.source, run.form, run.figures) == ("overhead", "measured", "full", figures)
    monkeypatch.setattr(sys, "argv", ["overhead", "--json", "--quick"])
    measure("overhead", lambda quick: figures)
    path.write_text(capsys.readouterr().out)
    with pytest.raises(ValueError, match="quick"):
        report.read_run(path)


def test_report_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = report.PAGE.read_text()
    monkeypatch.setattr(report, "PAGE", tmp_path / "benchmarks.md")
    main(["--report"])
    assert report.PAGE.read_text() == expected


def test_show_prints_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--show", "listops"])
    printed = capsys.readouterr().out
    (run,) = (run for run in report.read_runs() if run.benchmark == "listops")
    assert all(name in printed for name in run.figures)


def test_bad_file_ends_the_report_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(tmp_path, {name: RUN[name] for name in RUN if name != "date"})
    monkeypatch.setattr(report.read_runs, "__defaults__", (tmp_path,))
    with pytest.raises(SystemExit) as end:
        main(["--report"])
    assert end.value.code == f"{path}: the field date is missing"
