"""Names of columns, and which of them metrics may have."""

from collections.abc import Callable
from typing import Any

from results.records.columns import PREFIXES, RESERVED, is_reserved, metric_name_problem
from results.records.row import Row

MakeRow = Callable[..., Row]


def test_extra_metric_does_not_replace_a_missing_metric(make_row: MakeRow) -> None:
    columns = make_row(status="failed", directions={"loss": "min"}, extra_metrics={"loss": 3.0}).columns()
    assert columns["extra_metric_loss"] == 3.0
    assert "loss" not in columns


def test_no_other_value_takes_the_column_of_a_missing_metric(make_row: MakeRow) -> None:
    metrics = {"loss": 3.0, "LOSS_se": 4.0}
    columns = make_row(status="failed", directions={"loss": "min"}, extra_metrics=metrics, profile=metrics).columns()
    assert not [name for name in columns if name.lower() in ("loss", "loss_se")]
    assert (columns["extra_metric_LOSS_se"], columns["profile_loss"]) == (4.0, 3.0)


def test_metric_names_are_a_letter_and_then_letters_digits_and_underscores() -> None:
    bad: tuple[Any, ...] = ("", "a b", 'x"y', 3, "loss\n")
    for name in bad:
        refusal = metric_name_problem([name])
        assert refusal is not None
        assert refusal.endswith(repr(name))
    assert metric_name_problem(["loss", "Top1_accuracy", "mse"]) is None


def test_reserved_names_ignore_case() -> None:
    names = ["params", "Params", "step", "latency_ms", "test_x", "recipe_lr", "SPEED_x"]
    free = ["accuracy", "loss_se", "time_at_goal", "testing", "env_steps"]
    assert [name for name in names + free if is_reserved(name)] == names


def test_every_column_is_reserved_or_has_a_prefix(make_row: MakeRow) -> None:
    full = make_row(test={"x": 1.0}, speeds={"x": 1.0}, recipe={"x": 1}, provenance={"versions": {"x": "1"}})
    assert all(name in RESERVED or name.startswith(PREFIXES) for name in full.columns())
