"""Notices about rows that should not be in one table."""

import re
from collections.abc import Callable

from results.query.mixtures import abbreviate, mixtures, mixtures_within
from results.query.query import query
from results.records.row import Row
from results.records.table import from_rows

MakeRow = Callable[..., Row]


def words(line: str) -> set[str]:
    """Names and whole numbers in a line."""
    return set(re.findall(r"\w+", line))


def test_comparable_rows_are_no_mixture(make_row: MakeRow) -> None:
    rows = [make_row(depth=depth) for depth in (1, 2, 3)] + [make_row(task="other", task_version=2, preset="paper")]
    assert mixtures(from_rows([*rows, make_row(status="failed", data=None)])) == []


def test_mixture_notice_has_a_condition_that_separates_it(make_row: MakeRow) -> None:
    mixture_columns: dict[str, tuple[int | str, int | str]] = {
        "task_version": (1, 2),
        "preset": ("proxy", "paper"),
        "data": ("d1", "d2"),
        "counter": ("fvcore 0.1", "fvcore 0.2"),
    }
    for column, values in mixture_columns.items():
        (line,) = mixtures(from_rows([make_row(**{column: value}) for value in values]))
        assert line.startswith("digits: 2 ")
        assert "\n" not in line
        assert all(str(value) in line for value in values)
        assert f"{column} = {min(values)!r}." in line


def test_several_recipes_are_one_line_for_each_preset(make_row: MakeRow) -> None:
    settings = {f"setting_{i}": 0 for i in range(30)}
    rows = [
        make_row(recipe=settings | {"lr": 0.1, "same": "x"}),
        make_row(recipe=dict.fromkeys(settings, 1) | {"lr": 0.2, "same": "x"}),
        make_row(recipe={"same": "x"}),  # the other fields are unknown
        make_row(task="other", recipe={"lr": 0.7}),
    ]
    (line,) = mixtures(from_rows(rows))
    assert {"digits", "proxy", "28"} <= words(line)
    assert "setting_0 (0, 1), setting_1 (0, 1), setting_2 (0, 1)" in line
    assert line.endswith("recipe_setting_0 = 0.")


def test_two_presets_are_one_line_without_their_settings(make_row: MakeRow) -> None:
    rows = [make_row(preset="proxy", recipe={"lr": 0.1}), make_row(preset="paper", recipe={"lr": 0.2})]
    (line,) = mixtures(from_rows(rows))
    assert line.startswith("digits: 2 ")
    assert "preset = 'paper'" in line
    assert "lr" not in words(line)


def test_condition_in_a_mixture_can_be_used(make_row: MakeRow) -> None:
    for values in ((0.1, 0.2), ("it's", "x"), ([1, 2], [3]), (True, False)):
        table = from_rows([make_row(recipe={"a-b c": value}) for value in values])
        (line,) = mixtures(table)
        assert len(query(table, where=line[line.index('"recipe_') :].removesuffix("."))) == 1


def test_many_seeds_are_one_line_that_offers_means(make_row: MakeRow) -> None:
    rows = [make_row(seed=seed) for seed in range(50)] + [make_row(task="other")]
    (line,) = mixtures(from_rows(rows))
    assert line.startswith("digits: 50 ")
    assert {"seed", "0", "1", "2", "47"} <= words(line)
    assert "--best" in line
    assert "--by key" in line


def test_start_weights_differ_from_no_start(make_row: MakeRow) -> None:
    table = from_rows([make_row(), make_row(start="0123456789abcdef")])
    (line,) = mixtures(table)
    assert line.startswith("digits: 2 ")
    assert {"none", "0123456789abcdef"} <= words(line)
    assert line.endswith("start is null.")


def test_few_shows_the_first_values_and_counts_the_rest() -> None:
    assert abbreviate([1, None, "x"]) == "1, none, x"
    assert abbreviate(range(12), most=10) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"


def test_means_mix_recipes_only_where_a_group_has_two(make_row: MakeRow) -> None:
    rows = [make_row(depth=depth, recipe={"lr": 0.1 * depth}, seed=seed) for depth in (1, 2) for seed in (0, 1)]
    assert mixtures_within(from_rows(rows), ["depth"]) == []
    for by in (["task"], ["preset"], ["topology"]):
        (line,) = mixtures_within(from_rows(rows), by)
        assert "digits" in words(line)
        assert "lr (0.1, 0.2)" in line
    assert mixtures_within(from_rows(rows), ["recipe_lr"]) == []
    other = [make_row(data="d1", recipe={"lr": 0.7}), make_row(data="d2", recipe={"lr": 0.8})]
    assert mixtures_within(from_rows(other), ["topology"]) == []  # different recipes have no common mean
