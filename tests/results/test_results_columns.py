"""Names of columns: which a metric may have, and what stands under them."""

from collections.abc import Callable
from typing import Any

import pytest

from results.columns import is_reserved, refusal_of
from results.row import PREFIXES, RESERVED, Row

MakeRow = Callable[..., Row]


def test_a_measure_does_not_pass_for_a_metric_that_is_missing(make_row: MakeRow) -> None:
    columns = make_row(status="failed", directions={"loss": "min"}, measures={"loss": 3.0}).columns()
    assert columns["measure_loss"] == 3.0
    assert "loss" not in columns


def test_nothing_stands_under_a_metric_that_is_missing_or_its_standard_error(make_row: MakeRow) -> None:
    others = {"loss": 3.0, "LOSS_se": 4.0}
    columns = make_row(status="failed", directions={"loss": "min"}, measures=others, profile=others).columns()
    assert not [name for name in columns if name.lower() in ("loss", "loss_se")]
    assert (columns["measure_LOSS_se"], columns["profile_loss"]) == (4.0, 3.0)


@pytest.mark.parametrize("names", [[""], ["a b"], ['x"y'], [3], ["loss\n"]])
def test_what_is_no_name_of_a_metric(names: list[Any]) -> None:
    assert "a letter and then letters, digits and _" in str(refusal_of(names))
    assert refusal_of(["loss", "Top1_accuracy", "mse"]) is None


@pytest.mark.parametrize("name", ["params", "Params", "step", "latency_ms", "test_x", "recipe_lr", "SPEED_x"])
def test_names_that_no_metric_may_have(name: str) -> None:
    assert is_reserved(name)


@pytest.mark.parametrize("name", ["accuracy", "loss_se", "time_at_goal", "testing", "env_steps"])
def test_other_names_are_free(name: str) -> None:
    assert not is_reserved(name)


def test_every_column_is_reserved_or_has_a_prefix(make_row: MakeRow) -> None:
    full = make_row(test={"x": 1.0}, speeds={"x": 1.0}, recipe={"x": 1}, provenance={"versions": {"x": "1"}})
    assert all(name in RESERVED or name.startswith(PREFIXES) for name in full.columns())
