"""Rows: validation, JSON, identity and columns."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from expect import check, raises
from grouped import grouped
from results.records.columns import RESERVED
from results.records.identity import identity_of
from results.records.row import BadRow, Costs, CurvePoint, Row
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import Kind

MakeRow = Callable[..., Row]
RandomRows = Callable[[int, int], list[Row]]

ARCHITECTURE = Architecture(depth=2, width=8, hidden=16)


def identity_with(**changes: Any) -> str:
    """The identity of a training with these changes."""
    training: dict[str, Any] = {"task": "digits", "task_version": 1, "data": "d1", "architecture": ARCHITECTURE}
    training |= {"recipe": {"lr": 0.1, "betas": [0.9, 0.99]}, "seed": 0, "start": None}
    return identity_of(**{**training, **changes})


def test_written_row_is_read_back_equal(random_rows: RandomRows) -> None:
    for row in random_rows(0, 500):
        text = row.to_json()
        back = Row.from_json(text)
        assert back == row
        assert back.to_json() == text
        assert "\n" not in text
        assert text.isascii()


def test_random_rows_cover_every_field(random_rows: RandomRows) -> None:
    rows = random_rows(0, 500)
    for field in fields(Row):
        if field.name != "row_version":
            assert len({repr(getattr(row, field.name)) for row in rows}) > 1, field.name


def test_numbers_beyond_json_or_64_bits_are_not_written(make_row: MakeRow) -> None:
    for value in (float("nan"), float("inf"), 2**63, 10**400, -(2**63) - 1):
        for name in ("metrics", "test", "extra_metrics", "speeds"):
            with raises("out-of-range", option=f"row.{name}.loss"):
                make_row(**{name: {"loss": value}}).to_json()


def test_settings_become_plain_json_and_may_be_infinite() -> None:
    class Schedule(StrEnum):
        COSINE = "cosine"

    recipe = {"betas": (0.9, (1, 2)), "clip": float("inf"), "schedule": Schedule.COSINE, "grammar": {"depth": (4,)}}
    row = Row(task="t", task_version=1, architecture=ARCHITECTURE, preset="p", seed=0, status="failed", recipe=recipe)
    assert row.recipe == {"betas": [0.9, [1, 2]], "clip": "inf", "schedule": "cosine", "grammar": {"depth": [4]}}
    assert type(row.recipe["schedule"]) is str
    assert Row.from_json(row.to_json()) == row


def test_setting_that_is_not_json_is_refused() -> None:
    values: tuple[tuple[object, str], ...] = ((Path("x"), "PosixPath"), ({1: 2}, "1"), ({1, 2}, "set"))
    for value, description in values:
        with pytest.raises(TypeError, match=rf"recipe\.lr\b.* {description}$"):
            identity_with(recipe={"lr": value})


def test_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with raises("too-large", most=32):
        identity_with(recipe={"lr": endless})


def test_identity_is_the_same_on_every_machine() -> None:
    text = (
        '{"architecture":{"blocks":"","depth":2,"head_dim":0,"heads":0,"hidden":16,"model":"","topology":"resnet",'
        '"width":8},"data":"d1","recipe":{"betas":[0.9,0.99],"lr":0.1},'
        '"seed":0,"start":null,"task":"digits","task_version":1}'
    )
    assert identity_with() == hashlib.sha256(text.encode()).hexdigest()[:16] == "ac29d5f6ab51ea9b"


def test_identity_does_not_depend_on_order_or_spelling() -> None:
    assert identity_with(recipe={"betas": (0.9, 0.99), "lr": 0.1}) == identity_with()
    assert identity_with(recipe={"a": {"x": 1, "y": 2}}) == identity_with(recipe={"a": {"y": 2.0, "x": 1.0}})
    explicit = Architecture(depth=2, width=8, hidden=16, heads=0, head_dim=0, topology="resnet", model="")
    assert identity_with(architecture=explicit) == identity_with()


IDENTITY_CHANGES: list[dict[str, Any]] = [
        {"task": "other"}, {"task_version": 2}, {"data": "d2"}, {"data": None}, {"seed": 1}, {"start": "abc"},
        {"architecture": replace(ARCHITECTURE, depth=3)}, {"architecture": replace(ARCHITECTURE, topology="ancre")},
        {"recipe": {}}, {"recipe": {"lr": 0.2, "betas": [0.9, 0.99]}}, {"recipe": {"lr": 0.1, "betas": [0.99, 0.9]}},
        {"recipe": {"lr": "0.1", "betas": [0.9, 0.99]}}, {"recipe": {"lr": 0.1, "betas": [0.9, 0.99], "clip": None}},
        {"recipe": {"lr": 0.1, "betas": [0.9, 0.99], "without_decay": []}},
]  # fmt: skip


def test_trainings_that_differ_have_different_identities() -> None:
    assert [change for change in IDENTITY_CHANGES if identity_with(**change) == identity_with()] == []
    assert len({identity_with(**change) for change in IDENTITY_CHANGES}) == len(IDENTITY_CHANGES)


def test_identity_does_not_depend_on_the_outcome(make_row: MakeRow) -> None:
    row = make_row(recipe={"lr": 0.1, "betas": (0.9, 0.99)})
    assert row.identity() == identity_with()
    outcome = {"status": "failed", "error": "x", "steps": 9, "metrics": {"loss": 1.0}, "space": "s", "preset": "other"}
    assert replace(row, **outcome, provenance={"wall_s": 3.0}).identity() == identity_with()
    assert Row.from_json(row.to_json()).identity() == identity_with()


def test_random_rows_have_different_identities(random_rows: RandomRows) -> None:
    rows = random_rows(1, 300)
    identities = {row.identity() for row in rows}
    assert len(identities) > 290
    assert all(len(identity) == 16 and int(identity, 16) >= 0 for identity in identities)


def test_metric_with_a_reserved_name_replaces_no_column(make_row: MakeRow) -> None:
    plain = {name: value for name, value in make_row(params=12).columns().items() if name != "identity"}
    metrics = {"metric_": 5.0, "test_": 4.0, "extra_metric_": 6.0, "speed_": 7.0, "recipe_": 9}
    with grouped() as case:
        for name in sorted(RESERVED):
            with case(name):
                groups = {"metrics": {name: 5.0}, "extra_metrics": {name: 6.0}, "test": {name: 4.0}}
                columns = make_row(
                    params=12, **groups, speeds={name: 7.0}, profile={name: 8.0}, recipe={name: 9}
                ).columns()
                assert {name: columns[name] for name in plain} == plain
                assert {prefix: columns[prefix + name] for prefix in metrics} == metrics
                assert 8.0 in (columns.get(name), columns.get(f"profile_{name}"))


def test_every_value_has_a_column_of_its_own(random_rows: RandomRows) -> None:
    groups = ("metrics", "test", "extra_metrics", "speeds", "profile", "recipe")
    for row in random_rows(2, 500):
        values = {name: getattr(row, name) for name in groups} | {"versions": row.provenance.get("versions", {})}
        bare = replace(row, **{name: {} for name in groups}, provenance={}).columns()
        assert len(row.columns()) == len(bare) + sum(map(len, values.values()))


def test_groups_of_values_have_their_columns(make_row: MakeRow) -> None:
    row = make_row(
        directions={"loss": "min"},
        metrics={"loss": 1.0},
        test={"loss": 2.0},
        extra_metrics={"condition_number": 3.0, "loss": 3.5},
        speeds={"steps": 4.0},
        profile={"device": "a chip", "latency_ms": 5.0},
        recipe={"lr": 6.0, "betas": [0.9, 0.99], "compile": False},
        provenance={"device": "cpu", "wall_s": 7.0, "versions": {"nas-bench": "8"}, "anything": 1},
    )
    columns = row.columns()
    expected = {"loss": 1.0, "test_loss": 2.0, "condition_number": 3.0, "extra_metric_loss": 3.5, "speed_steps": 4.0}
    expected |= {"profile_device": "a chip", "latency_ms": 5.0, "recipe_lr": 6.0, "recipe_betas": "[0.9, 0.99]"}
    expected |= {"recipe_compile": "false", "device": "cpu", "wall_s": 7.0, "version_nas_bench": "8"}
    assert {name: columns[name] for name in expected} == expected
    assert "anything" not in columns


def test_curve_ends_where_training_ended(make_row: MakeRow) -> None:
    curve: tuple[CurvePoint, ...] = ({"step": 1, "metrics": {"loss": 3.0, "step": 9.0}, "seconds": 0.5},)
    row = make_row(curve=curve, steps=2, metrics={"loss": 2.0, "loss_se": 0.1})
    first, last = row.points()
    shared_columns = {"identity": row.identity(), "task": "digits", "preset": "proxy", "seed": 0}
    shared_columns |= {"key": row.architecture.key, "topology": "resnet"}
    assert first == shared_columns | {"step": 1, "seconds": 0.5, "loss": 3.0, "metric_step": 9.0}
    assert last == shared_columns | {"step": 2, "seconds": None, "loss": 2.0, "loss_se": 0.1}
    assert len(replace(row, status="pruned").points()) == 1


def test_last_point_of_a_curve_is_not_repeated(make_row: MakeRow) -> None:
    curve: tuple[CurvePoint, ...] = ({"step": 2, "metrics": {"loss": 2.0}},)
    assert len(make_row(curve=curve, steps=2, metrics={"loss": 2.0}).points()) == 1
    assert len(make_row(curve=curve, steps=3, metrics={"loss": 2.0}).points()) == 2


def test_architecture_and_status_are_read_without_validation(make_row: MakeRow) -> None:
    record = json.loads(make_row().to_json())
    record["architecture"] |= {"depth": 0, "width": -1, "hidden": 0, "heads": 3, "topology": "no such(, thing"}
    record |= {"status": "nobody knows", "seed": -1, "directions": {"loss": "sideways"}}
    row = Row.from_json(json.dumps(record))
    assert (row.architecture.topology, row.status) == ("no such(, thing", "nobody knows")
    assert row.columns()["depth"] == 0
    assert Row.from_json(row.to_json()) == row


CHANGES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"task": 3}, "wrong-type", {"option": "task"}),
    ({"task_version": True}, "wrong-type", {"option": "task_version"}),
    ({"seed": 1.5}, "wrong-type", {"option": "seed"}),
    ({"data": 7}, "wrong-type", {"option": "data"}),
    ({"metrics": [1]}, "wrong-type", {"option": "metrics"}),
    ({"metrics": {"loss": "low"}}, "wrong-type", {"option": "metrics"}),
    ({"metrics": {"loss": None}}, "wrong-type", {"option": "metrics"}),
    ({"test": {"loss": True}}, "wrong-type", {"option": "test"}),
    ({"profile": {"batch": None}}, "wrong-type", {"option": "profile"}),
    ({"curve": {}}, "wrong-type", {"option": "curve"}),
    ({"curve": [{"step": 1, "loss": 2.0}]}, "wrong-type", {"option": "curve"}),
    ({"curve": [{"step": 1.5, "metrics": {}}]}, "wrong-type", {"option": "curve"}),
    ({"recipe": None}, "wrong-type", {"option": "recipe"}),
    ({"provenance": {"wall_s": "long"}}, "wrong-type", {"option": "wall_s"}),
    ({"provenance": {"versions": ["torch"]}}, "wrong-type", {"option": "versions"}),
    ({"architecture": "resnet"}, "wrong-type", {"option": "architecture"}),
    ({"architecture": {"depth": 1}}, "missing-value", {"option": "width"}),
    ({"architecture": {"depth": "2", "width": 1, "hidden": 1}}, "wrong-type", {"option": "depth"}),
    ({"costs": {"params": 1.5}}, "wrong-type", {"option": "params"}),
    ({"costs": {"prams": 1}}, "unknown-name", {"option": "field", "value": "prams"}),
    ({"costs": {"uncounted": "add"}}, "wrong-type", {"option": "uncounted"}),
    ({"metric": {}}, "unknown-name", {"option": "field", "value": "metric"}),
    ({"row_version": 2}, "mismatch", {"option": "row_version", "value": 2, "expected": 1}),
    ({"row_version": None}, "mismatch", {"option": "row_version", "expected": 1}),
]


def test_record_that_cannot_be_a_row_is_refused_by_field(make_row: MakeRow) -> None:
    with grouped() as case:
        for change, kind, fields in CHANGES:
            with case(str(change)):
                check(refusal(json.loads(make_row().to_json()) | change), kind, **fields)
    extra_field = {"architecture": {"depth": 1, "width": 1, "hidden": 1, "glue": 1}}
    check(refusal(json.loads(make_row().to_json()) | extra_field), "unknown-name", value="glue")


def refusal(record: object, most: int = 300) -> BadRow:
    """The short one-line error of an invalid record."""
    with pytest.raises(BadRow) as caught:
        Row.from_json(json.dumps(record))
    assert len(str(caught.value)) < most
    return caught.value


UNREADABLE: list[tuple[str, dict[str, Any]]] = [
    ("extra_metrics", {"extra_metrics": {"x": None}}),
    ("metrics", {"metrics": {"x": True}}),
    ("test", {"test": {"x": "low"}}),
    ("profile", {"profile": {"x": None}}),
    ("profile", {"profile": {"x": [1]}}),
    ("status", {"status": None}),
    ("device", {"provenance": {"device": 3}}),
    ("threads", {"provenance": {"threads": True}}),
    ("versions", {"provenance": {"versions": {"torch": None}}}),
    ("directions", {"directions": {"x": None}}),
    ("seed", {"seed": 1.0}),
    ("params", {"params": 1.5}),
    ("curve", {"curve": ({"step": 1.0, "metrics": {}},)}),
    ("curve", {"curve": ({"step": 1, "metrics": {}, "seconds": None},)}),
    ("curve", {"curve": ({"step": 1, "metrics": {}, "extra": 1},)}),
]


def test_row_that_could_not_be_read_is_not_written(make_row: MakeRow) -> None:
    with grouped() as case:
        for name, change in UNREADABLE:
            with case(str(change)):
                with raises("wrong-type", option=name) as caught:
                    make_row(**change).to_json()
                assert isinstance(caught.value, BadRow)


def test_deepest_recipe_can_be_written_and_read(make_row: MakeRow) -> None:
    deep: Any = 1
    for _ in range(32):
        deep = {"a": deep}
    row = make_row(recipe=deep)
    assert Row.from_json(row.to_json()) == row
    assert row.identity()
    with raises("too-large", most=32):
        make_row(recipe={"a": deep})


def test_duplicate_names_are_found_in_linear_time() -> None:
    names = ",".join(f'"{number}":1' for number in range(100_000))  # quadratic time would take an hour
    with raises("duplicate", option="field", value="99999"):
        Row.from_json(f'{{{names},"99999":1}}')


def test_row_without_a_required_field_is_refused(make_row: MakeRow) -> None:
    record = json.loads(make_row().to_json())
    for name in ("task", "task_version", "architecture", "preset", "seed", "status", "row_version"):
        without = {other: value for other, value in record.items() if other != name}
        check(refusal(without), "missing-value", option=name)


def test_long_values_are_shortened_in_messages(make_row: MakeRow) -> None:
    for value in ("x" * 10**5, ["x" * 10**5] * 100, {"x" * 10**5: 1}):
        check(refusal(json.loads(make_row().to_json()) | {"seed": value}, 500), "wrong-type", option="seed")


def test_missing_costs_are_none(make_row: MakeRow) -> None:
    record = json.loads(make_row().to_json())
    del record["costs"]
    assert Row.from_json(json.dumps(record)).costs == Costs()


def test_endless_nesting_is_no_row() -> None:
    refusals: list[tuple[int, Kind, dict[str, Any]]] = [
        (33, "wrong-type", {"type": "list"}),
        (900, "wrong-type", {"type": "list"}),
        (1010, "too-large", {"most": 32}),
        (5000, "too-large", {"most": 32}),
    ]
    for levels, kind, details in refusals:
        with raises(kind, **details) as caught:
            Row.from_json("[" * levels + "]" * levels)
        assert isinstance(caught.value, BadRow)
