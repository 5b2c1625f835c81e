import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from results.row import RESERVED, BadRow, Costs, CurvePoint, Row, identity_in, identity_of
from search_spaces.architecture import Architecture

MakeRow = Callable[..., Row]
RandomRows = Callable[[int, int], list[Row]]

ARCHITECTURE = Architecture(depth=2, width=8, hidden=16)


def said(**changes: Any) -> str:
    """The identity of one training, but for these changes."""
    training: dict[str, Any] = {"task": "digits", "task_version": 1, "data": "d1", "architecture": ARCHITECTURE}
    training |= {"recipe": {"lr": 0.1, "betas": [0.9, 0.99]}, "seed": 0, "start": None}
    return identity_of(**{**training, **changes})


def test_a_row_is_read_as_it_was_written(random_rows: RandomRows) -> None:
    for row in random_rows(0, 500):
        text = row.to_json()
        back = Row.from_json(text)
        assert back == row
        assert back.to_json() == text
        assert "\n" not in text
        assert text.isascii()


def test_the_generator_covers_every_field(random_rows: RandomRows) -> None:
    drawn = random_rows(0, 500)
    for field in fields(Row):
        if field.name != "row_version":
            assert len({repr(getattr(row, field.name)) for row in drawn}) > 1, field.name


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, 10**400, -(2**63) - 1])
def test_a_number_that_json_or_a_table_does_not_have_is_not_written(make_row: MakeRow, value: float) -> None:
    for name in ("metrics", "test", "measures", "speeds"):
        with pytest.raises(ValueError, match=rf"{name}\.loss"):
            make_row(**{name: {"loss": value}}).to_json()


def test_settings_become_plain_and_may_be_infinite() -> None:
    class Schedule(StrEnum):
        COSINE = "cosine"

    recipe = {"betas": (0.9, (1, 2)), "clip": float("inf"), "schedule": Schedule.COSINE, "grammar": {"depth": (4,)}}
    row = Row(task="t", task_version=1, architecture=ARCHITECTURE, preset="p", seed=0, status="failed", recipe=recipe)
    assert row.recipe == {"betas": [0.9, [1, 2]], "clip": "inf", "schedule": "cosine", "grammar": {"depth": [4]}}
    assert type(row.recipe["schedule"]) is str
    assert Row.from_json(row.to_json()) == row


@pytest.mark.parametrize(("value", "says"), [(Path("x"), "PosixPath"), ({1: 2}, "names"), ({1, 2}, "set")])
def test_a_setting_that_is_not_of_json_is_refused_before_it_is_trained_with(value: object, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        said(recipe={"lr": value})


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="deeper"):
        said(recipe={"lr": endless})


def test_an_identity_is_the_same_on_every_machine() -> None:
    text = (
        '{"architecture":{"depth":2,"hidden":16,"width":8},"data":"d1","recipe":{"betas":[0.9,0.99],"lr":0.1},'
        '"seed":0,"start":null,"task":"digits","task_version":1}'
    )
    assert said() == hashlib.sha256(text.encode()).hexdigest()[:16] == "5947c35135bc39c0"


def test_an_identity_does_not_depend_on_order_or_spelling() -> None:
    assert said(recipe={"betas": (0.9, 0.99), "lr": 0.1}) == said()
    assert said(recipe={"a": {"x": 1, "y": 2}}) == said(recipe={"a": {"y": 2.0, "x": 1.0}})
    assert said(recipe={"lr": 0.1, "betas": [0.9, 0.99], "without_decay": [], "initial": ""}) == said()
    assert said(recipe={"lr": 0.1, "betas": [0.9, 0.99], "hours": 0.0, "batch_ramp": 0.0, "ema": 0.0}) == said()
    assert said(recipe={"lr": 0.1, "betas": [0.9, 0.99], "recompute_mixing": False}) == said()
    explicit = Architecture(depth=2, width=8, hidden=16, heads=0, head_dim=0, topology="resnet", model="")
    assert said(architecture=explicit) == said()


@pytest.mark.parametrize(
    "change",
    [
        {"task": "other"}, {"task_version": 2}, {"data": "d2"}, {"data": None}, {"seed": 1}, {"start": "abc"},
        {"architecture": replace(ARCHITECTURE, depth=3)}, {"architecture": replace(ARCHITECTURE, topology="ancre")},
        {"recipe": {}}, {"recipe": {"lr": 0.2, "betas": [0.9, 0.99]}}, {"recipe": {"lr": 0.1, "betas": [0.99, 0.9]}},
        {"recipe": {"lr": "0.1", "betas": [0.9, 0.99]}}, {"recipe": {"lr": 0.1, "betas": [0.9, 0.99], "clip": None}},
        {"recipe": {"lr": 0.1, "betas": [0.9, 0.99], "without_decay": ["head"]}},
        {"recipe": {"lr": 0.1, "betas": [0.9, 0.99], "hours": 24.0}},
        {"recipe": {"lr": 0.1, "betas": [0.9, 0.99], "batch_ramp": 0.6}},
        {"recipe": {"lr": 0.1, "betas": [0.9, 0.99], "recompute_mixing": True}},
    ],
)  # fmt: skip
def test_what_differs_has_another_identity(change: dict[str, Any]) -> None:
    assert said(**change) != said()


def test_a_rows_identity_is_that_of_its_training_whatever_came_of_it(make_row: MakeRow) -> None:
    row = make_row(recipe={"lr": 0.1, "betas": (0.9, 0.99)})
    assert row.identity() == said()
    outcome = {"status": "failed", "error": "x", "steps": 9, "metrics": {"loss": 1.0}, "space": "s", "preset": "other"}
    assert replace(row, **outcome, provenance={"wall_s": 3.0}).identity() == said()
    assert Row.from_json(row.to_json()).identity() == said()


def test_equal_rows_have_equal_identities(random_rows: RandomRows) -> None:
    drawn = random_rows(1, 300)
    identities = {row.identity() for row in drawn}
    assert len(identities) > 290
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in identities)


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_hostile_metric_replaces_no_column(make_row: MakeRow, name: str) -> None:
    profile = {name: 8.0}
    plain = make_row(params=12).columns()
    groups = {"metrics": {name: 5.0}, "measures": {name: 6.0}, "test": {name: 4.0}, "speeds": {name: 7.0}}
    columns = make_row(params=12, **groups, profile=profile, recipe={name: 9}).columns()
    assert {own: columns[own] for own in plain if own != "identity"} == {
        own: plain[own] for own in plain if own != "identity"
    }
    prefixed = {"metric_": 5.0, "test_": 4.0, "measure_": 6.0, "speed_": 7.0, "recipe_": 9}
    assert {prefix: columns[prefix + name] for prefix in prefixed} == prefixed
    assert 8.0 in (columns.get(name), columns.get(f"profile_{name}"))


def test_every_value_of_a_row_has_a_column_of_its_own(random_rows: RandomRows) -> None:
    groups = ("metrics", "test", "measures", "speeds", "profile", "recipe")
    for row in random_rows(2, 500):
        values = {name: getattr(row, name) for name in groups} | {"versions": row.provenance.get("versions", {})}
        bare = replace(row, **{name: {} for name in groups}, provenance={}).columns()
        assert len(row.columns()) == len(bare) + sum(map(len, values.values()))


def test_groups_have_their_columns(make_row: MakeRow) -> None:
    row = make_row(
        directions={"loss": "min"},
        metrics={"loss": 1.0},
        test={"loss": 2.0},
        measures={"condition_number": 3.0, "loss": 3.5},
        speeds={"steps": 4.0},
        profile={"device": "a chip", "latency_ms": 5.0},
        recipe={"lr": 6.0, "betas": [0.9, 0.99], "compile": False},
        provenance={"device": "cpu", "wall_s": 7.0, "versions": {"nas-bench": "8"}, "upgraded_from": 1},
    )
    columns = row.columns()
    expected = {"loss": 1.0, "test_loss": 2.0, "condition_number": 3.0, "measure_loss": 3.5, "speed_steps": 4.0}
    expected |= {"profile_device": "a chip", "latency_ms": 5.0, "recipe_lr": 6.0, "recipe_betas": "[0.9, 0.99]"}
    expected |= {"recipe_compile": "false", "device": "cpu", "wall_s": 7.0, "version_nas_bench": "8"}
    assert {name: columns[name] for name in expected} == expected
    assert "upgraded_from" not in columns


def test_a_curve_ends_where_training_did(make_row: MakeRow) -> None:
    curve: tuple[CurvePoint, ...] = ({"step": 1, "metrics": {"loss": 3.0, "step": 9.0}, "seconds": 0.5},)
    row = make_row(curve=curve, steps=2, metrics={"loss": 2.0, "loss_se": 0.1})
    first, last = row.points()
    own = {"identity": row.identity(), "task": "digits", "preset": "proxy", "seed": 0}
    own |= {"key": row.architecture.key, "topology": "resnet"}
    assert first == own | {"step": 1, "seconds": 0.5, "loss": 3.0, "metric_step": 9.0}
    assert last == own | {"step": 2, "seconds": None, "loss": 2.0, "loss_se": 0.1}
    assert len(replace(row, status="pruned").points()) == 1


def test_the_end_of_a_curve_stands_once(make_row: MakeRow) -> None:
    curve: tuple[CurvePoint, ...] = ({"step": 2, "metrics": {"loss": 2.0}},)
    assert len(make_row(curve=curve, steps=2, metrics={"loss": 2.0}).points()) == 1
    assert len(make_row(curve=curve, steps=3, metrics={"loss": 2.0}).points()) == 2


def test_reading_judges_nothing(make_row: MakeRow) -> None:
    record = json.loads(make_row().to_json())
    record["architecture"] = {"depth": 0, "width": -1, "hidden": 0, "heads": 3, "topology": "no such(, thing"}
    record |= {"status": "nobody knows", "seed": -1, "directions": {"loss": "sideways"}}
    row = Row.from_json(json.dumps(record))
    assert (row.architecture.topology, row.status) == ("no such(, thing", "nobody knows")
    assert row.columns()["depth"] == 0
    assert Row.from_json(row.to_json()) == row


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"task": 3}, "'task' must be text, got 3"),
    ({"task_version": True}, "'task_version' must be an integer, got True"),
    ({"seed": 1.5}, "'seed' must be an integer, got 1.5"),
    ({"data": 7}, "'data' must be text or null"),
    ({"metrics": [1]}, "'metrics' must be an object of numbers"),
    ({"metrics": {"loss": "low"}}, "'metrics' must be an object of numbers"),
    ({"metrics": {"loss": None}}, "'metrics' must be an object of numbers"),
    ({"test": {"loss": True}}, "'test' must be an object of numbers"),
    ({"profile": {"batch": None}}, "'profile' must be an object of numbers and texts"),
    ({"curve": {}}, "'curve' must be a list of points"),
    ({"curve": [{"step": 1, "loss": 2.0}]}, "'curve' must be a list of points"),
    ({"curve": [{"step": 1.5, "metrics": {}}]}, "'curve' must be a list of points"),
    ({"recipe": None}, "'recipe' must be an object"),
    ({"provenance": {"wall_s": "long"}}, "'wall_s' must be a number or null"),
    ({"provenance": {"versions": ["torch"]}}, "'versions' must be an object of texts"),
    ({"architecture": "resnet"}, "'architecture' must be an object"),
    ({"architecture": {"depth": 1}}, "an architecture needs 'width'"),
    ({"architecture": {"depth": "2", "width": 1, "hidden": 1}}, "'depth' of an architecture must be an integer"),
    ({"architecture": {"depth": 1, "width": 1, "hidden": 1, "glue": 1}}, "an architecture has no field 'glue'"),
    ({"costs": {"params": 1.5}}, "'params' must be an integer or null"),
    ({"costs": {"prams": 1}}, "'costs' has an unknown field 'prams'"),
    ({"costs": {"uncounted": "add"}}, "'uncounted' must be a list of texts"),
    ({"metric": {}}, "it has an unknown field 'metric'"),
    ({"row_version": 3}, "it is of row_version 3, this nas reads up to 2"),
    ({"row_version": 0}, "'row_version' must be an integer of at least 1"),
    ({"row_version": "2"}, "'row_version' must be an integer of at least 1"),
]


@pytest.mark.parametrize(("change", "reason"), CHANGES)
def test_what_cannot_be_a_row_is_refused_with_its_reason(
    make_row: MakeRow, change: dict[str, Any], reason: str
) -> None:
    record = json.loads(make_row().to_json()) | change
    with pytest.raises(BadRow) as caught:
        Row.from_json(json.dumps(record))
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "change",
    [
        {"measures": {"x": None}}, {"metrics": {"x": True}}, {"test": {"x": "low"}}, {"profile": {"x": None}},
        {"profile": {"x": [1]}}, {"status": None}, {"provenance": {"device": 3}}, {"provenance": {"threads": True}},
        {"provenance": {"versions": {"torch": None}}}, {"directions": {"x": None}}, {"seed": 1.0}, {"params": 1.5},
        {"curve": ({"step": 1.0, "metrics": {}},)}, {"curve": ({"step": 1, "metrics": {}, "seconds": None},)},
        {"curve": ({"step": 1, "metrics": {}, "extra": 1},)},
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_not_written(make_row: MakeRow, change: dict[str, Any]) -> None:
    with pytest.raises(BadRow):
        make_row(**change).to_json()


def test_a_recipe_that_a_row_can_have_can_be_written_however_deep(make_row: MakeRow) -> None:
    deep: Any = 1
    for _ in range(32):
        deep = {"a": deep}
    row = make_row(recipe=deep)
    assert Row.from_json(row.to_json()) == row
    assert row.identity()
    with pytest.raises(ValueError, match="deeper"):
        make_row(recipe={"a": deep})


def test_names_that_stand_twice_are_found_in_one_pass() -> None:
    names = ",".join(f'"{number}":1' for number in range(300_000))  # in two, this takes hours
    with pytest.raises(BadRow, match="it says '299999' twice"):
        Row.from_json(f'{{{names},"299999":1}}')


@pytest.mark.parametrize("name", ["task", "task_version", "architecture", "preset", "seed", "status"])
def test_a_row_without_what_it_is_of_is_refused(make_row: MakeRow, name: str) -> None:
    record = json.loads(make_row().to_json())
    del record[name]
    with pytest.raises(BadRow, match=f"it has no '{name}'"):
        Row.from_json(json.dumps(record))


def test_the_value_that_a_refusal_shows_is_short(make_row: MakeRow) -> None:
    for value in ("x" * 10**6, ["x" * 10**6] * 100, {"x" * 10**6: 1}):
        record = json.loads(make_row().to_json()) | {"seed": value}
        with pytest.raises(BadRow) as caught:
            Row.from_json(json.dumps(record))
        assert len(str(caught.value)) < 500


def test_costs_that_were_not_measured_are_none(make_row: MakeRow) -> None:
    record = json.loads(make_row().to_json())
    del record["costs"]
    assert Row.from_json(json.dumps(record)).costs == Costs()


@pytest.mark.parametrize("levels", [33, 900, 1010, 5000])
def test_what_nests_without_end_is_no_row(levels: int) -> None:
    with pytest.raises(BadRow):
        Row.from_json("[" * levels + "]" * levels)


def test_settings_that_came_later_stand_in_the_columns_of_earlier_rows_of_such_recipes(make_row: MakeRow) -> None:
    recipe = {"lr": 1e-3, "weight_decay": 0.1, "betas": [0.9, 0.99], "schedule": "cosine", "clip": 1.0}
    now = {"lr": 1e-3, "optimizer": "muon", **recipe}
    for given, wanted in ((recipe, "adamw"), (now, "muon")):
        columns = make_row(recipe=given).columns()
        assert (columns["recipe_optimizer"], columns["recipe_parametrization"]) == (wanted, "standard")
        assert (columns["recipe_hours"], columns["recipe_batch_ramp"]) == (0.0, 0.0)
    assert "recipe_optimizer" not in make_row(recipe={"lr": 1e-3}).columns()


def wired(row: Row, topology: str) -> str:
    """A Row as it is written, with another text as its topology."""
    record = json.loads(row.to_json())
    record["architecture"]["topology"] = topology
    return json.dumps(record)


@pytest.mark.parametrize("topology", ["hyper(dynamic=true,streams=4)", "hyper(streams=4)/resnet"])
def test_a_default_that_was_written_is_left_out_and_the_identity_made_anew(make_row: MakeRow, topology: str) -> None:
    short = re.sub(r"\(.*\)", "", topology)
    written = wired(make_row(), topology)
    row, same = Row.from_json(written, "0123456789abcdef"), Row.from_json(wired(make_row(), short))
    assert row == same
    assert row.architecture.topology == short
    assert row.identity() == same.identity() == identity_in(written, "0123456789abcdef") != "0123456789abcdef"
    assert Row.from_json(row.to_json(), "0123456789abcdef").identity() == "0123456789abcdef"


@pytest.mark.parametrize("topology", ["hyper(streams=2)", "hyper", "hyper((", "hyper(streams=4)[:9", "of_another(k=1)"])
def test_what_was_written_without_defaults_is_read_as_it_is(make_row: MakeRow, topology: str) -> None:
    written = wired(make_row(), topology)
    row = Row.from_json(written, "0123456789abcdef")
    assert row.architecture.topology == topology
    assert row.identity() == identity_in(written, "0123456789abcdef") == "0123456789abcdef"
    assert identity_in(written[:-9], "0123456789abcdef") == "0123456789abcdef"
