"""Records of version 1, read as rows of this version."""

import json
from pathlib import Path
from typing import Any

from expect import raises
from grouped import grouped
from results.records import jsonl
from results.records.row import BadRow, Row
from results.records.table import from_rows

STUDY = Path(__file__).parents[1] / "data" / "study_of_version_1.jsonl"
"""What a search of version 1 kept, each trial's record as it was written."""

RECORD: dict[str, Any] = {
    "task": "goal-point-maze",
    "task_version": 1,
    "architecture": {"depth": 2, "width": 64, "hidden": 64, "heads": 0, "head_dim": 0, "topology": "resnet"},
    "seed": 0,
    "preset": "proxy",
    "status": "complete",
    "space": None,
    "steps": 8,
    "start": None,
    "data": "d1",
    "validation": {
        "time_at_goal": 2.0, "time_at_goal_se": 0.5, "env_steps": 180.0, "goals_of_others": 0.5,
        "env_steps_per_second": 900.0, "updates_per_second": 30.0, "skipped_documents": 1.0, "condition_number": 40.0,
        "condition_number_12": 41.0, "condition_heads": 42.0, "condition_rank_share": 1.0, "loss_per_second": 3.0,
    },
    "test": {"time_at_goal": 1.0, "loss_per_second": 4.0},
    "curve": [{"step": 4, "time_at_goal": 1.5, "time_at_goal_se": 0.25}],
    "costs": {"params": 7, "uncounted": ["aten::add"]},
    "profile": {"device": "a chip"},
    "error": None,
    "wall_s": 3.5,
    "versions": {"python": "3.11.7"},
}  # fmt: skip


def read(**changes: Any) -> Row:
    return Row.from_json(json.dumps(RECORD | changes))


def test_record_of_version_1_is_read_into_groups() -> None:
    row = read()
    assert row.row_version == 2
    assert row.metrics == {"time_at_goal": 2.0, "time_at_goal_se": 0.5, "loss_per_second": 3.0}
    assert row.recipe == {"goals_of_others": 0.5}
    assert row.speeds == {"env_steps_per_second": 900.0, "updates_per_second": 30.0}
    assert row.measures == {
        "env_steps": 180.0, "skipped_documents": 1.0, "condition_number": 40.0, "condition_number_12": 41.0,
        "condition_heads": 42.0, "condition_rank_share": 1.0,
    }  # fmt: skip
    assert row.curve == ({"step": 4, "metrics": {"time_at_goal": 1.5, "time_at_goal_se": 0.25}},)
    assert row.provenance == {
        "upgraded_from": 1, "recipe_known": False, "wall_s": 3.5, "versions": {"python": "3.11.7"},
    }  # fmt: skip
    assert (row.costs.params, row.costs.uncounted, row.profile) == (7, ("aten::add",), {"device": "a chip"})


def test_upgraded_row_is_written_in_this_version() -> None:
    assert Row.from_json(read().to_json()) == read()
    assert json.loads(read().to_json())["row_version"] == 2


def test_missing_fields_of_version_1_stay_empty() -> None:
    kept = {name: RECORD[name] for name in ("task", "task_version", "architecture", "seed", "preset", "status")}
    row = Row.from_json(json.dumps(kept))
    assert (row.metrics, row.curve, row.directions) == ({}, (), {})
    assert row.provenance == {"upgraded_from": 1, "recipe_known": False}


def test_rows_of_unknown_recipes_differ_by_preset() -> None:
    assert read().identity() == read(wall_s=9.0).identity()
    assert read().identity() != read(preset="paper").identity()


def test_row_of_an_unknown_recipe_equals_no_known_one() -> None:
    row = read()
    known = Row.from_json(row.to_json().replace('"recipe_known": false, ', ""))
    assert known.recipe == row.recipe
    assert known.identity() != row.identity()


def test_bad_record_of_version_1_is_refused_by_field() -> None:
    mistakes: list[tuple[str, dict[str, Any]]] = [
        ("validation", {"validation": [1]}),
        ("validation", {"validation": {"loss": None}}),
        ("curve", {"curve": None}),
        ("curve", {"curve": [3]}),
        ("curve", {"curve": [{"loss": 3}]}),
        ("curve", {"curve": [{"step": 1, "loss": "low"}]}),
        ("wall_s", {"wall_s": "long"}),
        ("versions", {"versions": {"torch": 2}}),
        ("test", {"test": 5}),
        ("seed", {"seed": None}),
    ]
    with grouped() as case:
        for name, changes in mistakes:
            with case(str(changes)), raises("wrong-type", option=name):
                read(**changes)
    with raises("missing-value", option="row_version", column="metrics") as caught:
        read(metrics={"loss": 1.0})
    assert isinstance(caught.value, BadRow)


def test_study_of_version_1_is_read_whole() -> None:
    rows, bad = jsonl.read(STUDY)
    assert not bad
    assert [row.architecture.topology for row in rows] == ["resnet", "grn-v1", "grn-v3", "dca(k=1)"]
    for row, text in zip(rows, STUDY.read_text().splitlines(), strict=True):
        old = json.loads(text)
        assert row.metrics == old["validation"]
        assert row.test == old["test"]
        assert [{"step": point["step"], **point["metrics"]} for point in row.curve] == old["curve"]
        assert row.provenance["versions"] == old["versions"]
        assert row.columns()["wall_s"] == old["wall_s"]
    assert from_rows(rows)["accuracy"].to_pylist() == [row.metrics["accuracy"] for row in rows]
