"""A report is one file that loads nothing from elsewhere, whatever the rows contain."""

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nas
from expect import raises
from nas.cli.main import app
from nas.report.axes import topology_of
from nas.report.colors import topology_styles
from nas.report.html import page
from nas.report.html.charts import axis
from nas.report.html.page import render_page
from nas.report.study import Study
from results.records import export, jsonl
from results.records.cell_text import cell_text
from results.records.columns import MUST_MATCH_COLUMNS
from results.records.table import from_records


class Tags(HTMLParser):
    """The names and attributes of all tags, and the text outside of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.is_text = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.is_text = tag != "script"

    def handle_data(self, data: str) -> None:
        if self.is_text:
            self.text.append(data)


@pytest.fixture(scope="module")
def html(study: Study) -> str:
    return render_page(study.contents())


def test_lines_that_are_no_rows_are_notes_of_the_front(study: Study) -> None:
    study_with_note = Study(study.name, study.storage, study.rows(), study.config, ["row 7 cannot be read"])
    assert "row 7 cannot be read" in render_page(study_with_note.contents())


@pytest.fixture(scope="module")
def tags(html: str) -> Tags:
    parser = Tags()
    parser.feed(html)
    return parser


def test_markup_in_a_row_is_text(html: str, tags: Tags, evil: str) -> None:
    assert evil not in html
    assert f"{evil} went wrong" in "".join(tags.text)
    scripts = [attributes for tag, attributes in tags.tags if tag == "script" and "type" not in attributes]
    assert len(scripts) == 2
    assert html.count("</script>") == sum(tag == "script" for tag, _ in tags.tags)  # no script ends early
    assert not any(name.startswith("on") for _, attributes in tags.tags for name in attributes)


def test_page_loads_nothing_from_elsewhere(tags: Tags) -> None:
    assert not [tag for tag, attributes in tags.tags if "src" in attributes or tag in ("iframe", "object", "base")]
    assert [attributes for tag, attributes in tags.tags if tag == "link"] == [{"rel": "icon", "href": "data:,"}]
    policy = next(a["content"] for _, a in tags.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert re.search(r"script-src 'sha256-\S+' 'sha256-\S+'$", policy)


def test_page_has_every_chart_the_table_failures_and_origins(study: Study, tags: Tags, evil: str) -> None:
    charts = {attributes["id"] for _, attributes in tags.tags if attributes.get("class") == "chart"}
    costs = {"cost-parameters", "cost-operations"}
    assert charts == {"front", "hypervolume", "curves", *costs, "axis-depth", "axis-topology", "equal-cost"}
    text = " ".join(tags.text)
    best = cell_text(study.summaries()[-1].record, "accuracy")
    for part in (best, f"seed 7: {evil}", "nas search any --seed 0", "abc", "torch 2", "/nowhere/studies.db"):
        assert part in text


def test_command_and_function_write_the_same_report(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl.write(study.rows()[:4], tmp_path / "rows.jsonl")
    nas.load(source="rows.jsonl").report(tmp_path / "called.html")
    result = CliRunner().invoke(app, ["report", "--from", "rows.jsonl", "-o", "typed.html"])
    assert result.exit_code == 0, result.output
    assert "typed.html" in result.output
    assert (tmp_path / "typed.html").read_text() == (tmp_path / "called.html").read_text()
    monkeypatch.setattr(page, "render_page", lambda *_, **__: "a page")
    assert CliRunner().invoke(app, ["report", "--from", "rows.jsonl"]).exit_code == 0
    assert [path.suffix for path in (tmp_path / "nas-runs").iterdir()] == [".html"]


def test_report_of_a_study_together_with_a_table(study: Study, tmp_path: Path) -> None:
    jsonl.write(study.rows()[:4], tmp_path / "rows.jsonl")
    first = study.table.slice(0, 1)
    theirs = {**first.select([*MUST_MATCH_COLUMNS]).to_pylist()[0], "accuracy": 0.99, "flops": 10, "params": 5}
    export.write(from_records([theirs, {**theirs, "topology": "of theirs"}]), "csv", tmp_path / "theirs.csv")
    both = nas.load(source=[tmp_path / "rows.jsonl", tmp_path / "theirs.csv"])
    html = render_page(both.contents())
    assert 'data-topology="of theirs"' in html
    assert 'data-topology="-"' in html
    both.plot()


def test_report_of_several_tasks_or_presets_is_an_error(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [*study.rows(), *(replace(row, task="it's") for row in study.rows()[:4])]
    jsonl.write(
        [*rows, *(replace(row, preset="full", recipe={"lr": 1.0}) for row in rows[-2:])], tmp_path / "rows.jsonl"
    )
    (tmp_path / "theirs.csv").write_text("task,preset,accuracy,flops\nother,full,1,1\n")
    both = nas.load(source=["rows.jsonl", "theirs.csv"])
    with raises("mismatch", option="task", choices=("any", "it's", "other")):
        both.report("x.html")
    with raises("mismatch", option="preset", choices=("full", "smoke")):
        both.where("task = 'it''s'").report("x.html")
    condition = "task = 'it''s' and preset = 'smoke'"
    assert [row.task for row in both.where(condition).rows()] == ["it's"] * 4
    assert len(both.where("task = 'other'").table) == 1
    words = ["report", "--from", "rows.jsonl", "-o", "x.html"]
    assert CliRunner().invoke(app, [*words, "--where", condition]).exit_code == 0
    assert (tmp_path / "x.html").exists()


def test_impossible_reports_are_errors(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with raises("unsupported", option="--output", path=str(tmp_path / "report.txt")):
        study.report(tmp_path / "report.txt")
    with raises("unknown-name", option="objective", value="acuracy", nearest="accuracy"):
        study.report(tmp_path / "report.html", "acuracy")
    with raises("missing-rows", study="s"):
        Study("s", "sqlite:///s.db", study.rows()[-1:]).report(tmp_path / "report.html")
    (tmp_path / "file").write_text("")
    with raises("unwritable", option="--output", path=str(tmp_path / "file" / "report.html")):
        Study("s", "sqlite:///s.db", study.rows()[:2]).report(tmp_path / "file" / "report.html")
    monkeypatch.delitem(sys.modules, "nas.report.html.page")
    monkeypatch.setitem(sys.modules, "markupsafe", None)
    with raises("needs-extra", extra="report", module="markupsafe"):
        study.report(tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_axis_with_long_names_is_vertical(study: Study) -> None:
    summaries = study.summaries()
    for name, side, across, height in (("topology", "y", "x", 3 * 22 + 20), ("depth", "x", "y", 230)):
        chart = axis(summaries, name, "accuracy", topology_styles({*map(topology_of, summaries)}))
        assert chart["height"] == height
        for layer in chart["layer"]:
            assert layer["encoding"][side]["field"] == "at"
            assert layer["encoding"][across]["field"] in ("of", "low", "mean")


def test_table_of_architectures_marks_the_front(study: Study, html: str) -> None:
    summaries = study.summaries()
    assert {"on front", "expected", "p front"} <= {*re.findall(r"<th[^>]*>(?:<button[^>]*>)?([^<]+)", html)}
    marks = re.findall(r"<td[^>]*>\*</td>", html)
    assert 0 < len(marks) == sum(summary.on_front for summary in summaries) < len(summaries)


def test_costs_by_part_are_of_the_likeliest_architectures(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.report.html.page.MAX_PARTS", 2)
    monkeypatch.setattr("nas.report.tables.CONTENDER_CHANCE", -1.0)  # all of them
    calls = []
    monkeypatch.setattr(
        "nas.report.html.charts.cost_parts_chart", lambda records, _: calls.append({r["key"] for r in records})
    )
    render_page(study.contents())
    chances = {summary.record["key"]: (summary.on_front, summary.p_front) for summary in study.summaries()}
    (keys, _) = calls
    assert len(keys) == 2
    assert min(chances[key] for key in keys) >= max(chances[key] for key in chances.keys() - keys)
