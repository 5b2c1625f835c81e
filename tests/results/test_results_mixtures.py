from collections.abc import Callable

import pytest

from results.mixtures import few, mixtures, mixtures_within
from results.query import query
from results.row import Row
from results.table import from_rows

MakeRow = Callable[..., Row]


def test_rows_that_belong_together_are_no_mixture(make_row: MakeRow) -> None:
    rows = [make_row(depth=depth) for depth in (1, 2, 3)] + [make_row(task="other", task_version=2, preset="paper")]
    assert mixtures(from_rows([*rows, make_row(status="failed", data=None)])) == []


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("task_version", (1, 2)),
        ("preset", ("proxy", "paper")),
        ("data", ("d1", "d2")),
        ("counter", ("fvcore 0.1", "fvcore 0.2")),
    ],
)
def test_a_mixture_is_said_in_one_line_with_the_condition_that_parts_it(
    make_row: MakeRow, column: str, values: tuple[int | str, int | str]
) -> None:
    (line,) = mixtures(from_rows([make_row(**{column: value}) for value in values]))
    assert line.startswith("digits: 2 ")
    assert "\n" not in line
    assert all(str(value) in line for value in values)
    assert f"{column} = {min(values)!r}." in line


def test_recipes_that_differ_are_said_in_one_line_for_each_preset(make_row: MakeRow) -> None:
    settings = {f"setting_{i}": 0 for i in range(30)}
    rows = [
        make_row(recipe=settings | {"lr": 0.1, "same": "x"}),
        make_row(recipe=dict.fromkeys(settings, 1) | {"lr": 0.2, "same": "x"}),
        make_row(recipe={"same": "x"}),  # the rest is not known
        make_row(task="other", recipe={"lr": 0.7}),
    ]
    assert mixtures(from_rows(rows)) == [
        "digits: several recipes of preset proxy in one table: setting_0 (0, 1), setting_1 (0, 1), setting_2 (0, 1) "
        "and 28 more. Keep one: recipe_setting_0 = 0."
    ]


def test_a_preset_that_differs_is_not_said_again_for_each_of_its_settings(make_row: MakeRow) -> None:
    rows = [make_row(preset="proxy", recipe={"lr": 0.1}), make_row(preset="paper", recipe={"lr": 0.2})]
    (line,) = mixtures(from_rows(rows))
    assert "2 values of preset" in line


def test_what_a_mixture_says_to_keep_is_a_condition(make_row: MakeRow) -> None:
    for values in ((0.1, 0.2), ("it's", "x"), ([1, 2], [3]), (True, False)):
        table = from_rows([make_row(recipe={"a-b c": value}) for value in values])
        (line,) = mixtures(table)
        assert len(query(table, where=line.partition("Keep one: ")[2].removesuffix("."))) == 1


def test_of_seeds_there_are_means(make_row: MakeRow) -> None:
    rows = [make_row(seed=seed) for seed in range(50)] + [make_row(task="other")]
    assert mixtures(from_rows(rows)) == [
        "digits: 50 values of seed (0, 1, 2 and 47 more) in one table: single seeds differ by chance. "
        "Means over them: --best METRIC, or --by key."
    ]


def test_weights_that_were_trained_before_are_told_from_none(make_row: MakeRow) -> None:
    table = from_rows([make_row(), make_row(start="0123456789abcdef")])
    (line,) = mixtures(table)
    assert line.startswith("digits: 2 values of start in one table (none, 0123456789abcdef); weights that were trained")
    assert line.endswith("Keep one: start is null.")


def test_the_first_values_stand_for_all() -> None:
    assert few([1, None, "x"]) == "1, none, x"
    assert few(range(12), most=10) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"


def test_means_are_of_a_mixture_only_where_a_group_has_two_recipes(make_row: MakeRow) -> None:
    rows = [make_row(depth=depth, recipe={"lr": 0.1 * depth}, seed=seed) for depth in (1, 2) for seed in (0, 1)]
    assert mixtures_within(from_rows(rows), ["depth"]) == []
    for by in (["task"], ["preset"], ["topology"]):
        (line,) = mixtures_within(from_rows(rows), by)
        assert line.startswith("digits: several recipes of preset proxy in one table: lr (0.1, 0.2).")
    assert mixtures_within(from_rows(rows), ["recipe_lr"]) == []
    other = [make_row(data="d1", recipe={"lr": 0.7}), make_row(data="d2", recipe={"lr": 0.8})]
    assert mixtures_within(from_rows(other), ["topology"]) == []  # which have no mean together
