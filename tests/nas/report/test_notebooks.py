"""What notebooks show: tables and pictures of studies, fronts, rows and comparisons, with text escaped."""

import pickle
import re
from html import escape

import pytest

import nas
from nas.report.front import Front
from nas.report.study import Study
from nas.workers.resources import Resources
from results.records.costs import Costs
from results.records.notebook import pairs_html, table_html
from toy_rows import LITTLE, a_row
from toy_searches import TOYS

IMAGE = 'src="data:image/png;base64,'
CURVE = tuple({"step": step, "metrics": {"accuracy": step / 10}} for step in (1, 2, 3))


def rows_of_two_architectures(task: str = "any") -> list[nas.Row]:
    return [
        a_row(
            task=task,
            seed=seed,
            architecture=LITTLE.with_fields({"topology": topology}),
            metrics={"accuracy": value, "accuracy_se": 0.01},
            costs=Costs(params=100, flops=flops),
        )
        for topology, value, flops in (("resnet", 0.8, 1000), ("dca", 0.9, 2000))
        for seed in range(2)
    ]


def test_tables_escape_text() -> None:
    html = table_html({"<name>": ["<b>bold</b>", "plain"]}) + pairs_html({"<i>": "&"})
    assert "<b>" not in html
    assert "<i>" not in html
    assert html.count("<tr>") == 4


def test_study_and_front_show_a_table_a_legend_and_a_picture() -> None:
    study = Study("s", "", rows_of_two_architectures())
    front = study.front()
    assert isinstance(front, Front)
    for html in (study._repr_html_(), front._repr_html_()):
        assert html.count(IMAGE) == 1
        assert {"topology", "accuracy", "p_front", "tier"} <= set(re.findall(r"<th[^>]*>([^<]*)</th>", html))
        assert "tier:" in html
    frame = front.to_pandas()
    assert [*frame["p_front"]] == [architecture.p_front for architecture in front]
    assert [*frame["expected"]] == [architecture.expected["accuracy"] for architecture in front]
    assert {*frame["on_front"]} == {"true"}
    assert [*frame["topology"]] == [architecture.record["topology"] for architecture in front]
    assert [*pickle.loads(pickle.dumps(front))] == front
    assert front.plot().axes[0].get_ylabel().startswith("accuracy")


def test_study_of_several_tasks_shows_a_table_and_why_there_is_no_picture() -> None:
    study = Study("s", "", [*rows_of_two_architectures(), *rows_of_two_architectures("other")])
    with pytest.raises(nas.UserError) as error:
        study.plot()
    for html in (study._repr_html_(), study.front()._repr_html_()):
        assert "<table" in html
        assert IMAGE not in html
        assert escape(str(error.value)) in html


def test_row_shows_its_groups_and_its_curve() -> None:
    html = a_row(curve=CURVE)._repr_html_()
    assert html.count(IMAGE) == 1
    assert "<th>depth</th>" in html
    assert "<details>" in html
    assert IMAGE not in a_row(curve=())._repr_html_()


def test_comparison_shows_differences_if_networks_were_trained(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {"arch": ["depth=1", "depth=2"], "preset": "smoke", "resources": Resources(1)}
    comparison = nas.compare(f"{TOYS}:Toy", seeds=2, **arguments)
    assert comparison._repr_html_().count(IMAGE) == 1
    axes = comparison.plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["depth 1", "depth 2"]
    costs = nas.compare(f"{TOYS}:Toy", **arguments)
    assert IMAGE not in costs._repr_html_()
    with pytest.raises(nas.UserError) as error:
        costs.plot()
    assert error.value.kind == "missing-rows"
