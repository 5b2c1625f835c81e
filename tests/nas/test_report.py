"""How a front is shown: chances, what is only possible, what is to be known beside it."""

from math import nan

import pytest
from rich.console import Console

from nas.commands import show
from nas.options import Format
from nas.places import DEFAULT_STORE
from nas.report import ask_again, front_notes, front_records, print_comparison, print_records, screen
from nas.study import Study
from results.costs import Costs
from results.standing import Standing
from search_spaces.errors import UserError
from toy_rows import a_row


def standing(chance: float, *, stands: bool, fresh: int = 0, level: int = 1) -> Standing:
    record = {"topology": "resnet", "flops": 1, "accuracy": 0.9, "seeds": max(fresh, 1)}
    seeds = tuple(str(seed) for seed in range(1 + fresh))
    return Standing(seeds, record, {"accuracy": 0.9}, bool(fresh), chance, stands, level)


def test_what_is_not_expected_on_a_front_but_may_be_stands_in_brackets() -> None:
    found = [standing(0.9, stands=True, fresh=2), standing(0.4, stands=False), standing(0.05, stands=False)]
    assert [(one["seeds"], one["at_front"]) for one in front_records(found)] == [("1+2", " 0.90"), ("1", "(0.40)")]
    assert any("in brackets" in note for note in front_notes(found))
    assert not any("in brackets" in note for note in front_notes(found[:1]))


@pytest.mark.parametrize(("fresh", "said"), [(0, True), (1, False)])
def test_a_front_says_where_its_seeds_chose_it(fresh: int, said: bool) -> None:
    notes = front_notes([standing(0.9, stands=True, fresh=fresh, level=2)])
    assert any("too good" in note for note in notes) == said
    assert any("2 groups" in note for note in notes)


def test_a_front_without_errors_has_no_chances_and_says_so() -> None:
    found = [standing(nan, stands=True)]
    assert front_records(found)[0]["at_front"] is None
    assert "--seeds 2" in front_notes(found)[0]


WIDE = [{"key": "abc", "accuracy": 0.51234, "accuracy_se": 0.01, "seeds": 12345678, "x|y": "a\\|b"}]


def test_markdown_holds_all_columns_and_no_cell_ends_another(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(screen(), WIDE, list(WIDE[0]), "title", Format.MARKDOWN)
    assert capsys.readouterr().out.splitlines() == [
        "title",
        "",
        "| key | accuracy | seeds | x\\|y |",
        "| --- | --- | --- | --- |",
        "| abc | 0.512±0.010 | 12345678 | a\\\\\\|b |",
    ]


def compared(topology: str, test: float, **over: object) -> dict[str, object]:
    means = {"accuracy": 0.5, "accuracy_se": 0.0123456, "test_accuracy": test, "test_accuracy_se": 0.01}
    verdict = dict.fromkeys(("over_first", "low", "high", "than_first")) | over
    return {"depth": 4, "topology": topology, "params": 35266, "params_off": test, **means, **verdict}


def test_a_narrow_terminal_keeps_what_a_comparison_came_to(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = {"over_first": 0.1, "low": -0.0123, "high": 0.2123, "than_first": "not distinguishable"}
    print_comparison(
        Console(width=70), "title", [compared("resnet", 0.5), compared("hyper(streams=2)", 0.6, **verdict)], {}
    )
    title, *table, room, told = capsys.readouterr().out.splitlines()
    assert told.startswith("over first: of test_accuracy, seed by seed; low and high hold")
    assert title == "title; all: depth 4, params 35266, accuracy 0.5"
    assert table[-1].split() == ["hyper(streams=2)", "0.1", "-0.0123", "0.2123", "not", "distinguishable"]
    assert room == "no room for: params_off, test_accuracy (COLUMNS=200 makes room)"


def test_a_comparison_without_a_test_says_so_of_its_differences(capsys: pytest.CaptureFixture[str]) -> None:
    untested = {"test_accuracy": None, "test_accuracy_se": None}
    verdict = {"over_first": 0.1, "low": -0.0123, "high": 0.2123, "than_first": "not distinguishable"}
    records = [compared("resnet", 0.5) | untested, compared("dca", 0.6, **verdict) | untested | {"accuracy": 0.6}]
    print_comparison(Console(width=150), "title", records, {})
    assert "over first: of accuracy, seed by seed" in capsys.readouterr().out


def test_equal_means_with_other_errors_are_not_alike(capsys: pytest.CaptureFixture[str]) -> None:
    records = [compared("resnet", 0.5), compared("dca", 0.6) | {"accuracy_se": 0.2}]
    print_comparison(Console(width=120), "title", records, {})
    out = capsys.readouterr().out
    assert "all: depth 4, params 35266\n" in out
    assert "0.500±0.012" in out
    assert "0.500±0.200" in out


@pytest.mark.parametrize(
    ("width", "shown", "left"),
    [(80, ["key", "accuracy", "seeds", "x|y"], []), (33, ["accuracy", "seeds"], ["key"]), (12, ["accuracy"], ["key"])],
)
def test_a_narrow_terminal_has_fewer_columns_and_all_digits(
    capsys: pytest.CaptureFixture[str], width: int, shown: list[str], left: list[str]
) -> None:
    print_records(Console(width=width), WIDE, list(WIDE[0]), "title")
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines[1] for name in shown)
    assert "0.512±0.010" in lines[3]
    assert ("12345678" in lines[3]) == ("seeds" in shown)
    assert [name for name in left if name in lines[-1]] == left


def test_what_asks_again_is_a_command_that_works_without_a_password() -> None:
    assert ask_again("a b", DEFAULT_STORE) == "nas results --study 'a b'"
    assert ask_again("s", "sqlite:////tmp/s.db") == "nas results --study s --storage sqlite:////tmp/s.db"
    assert "sesame" not in ask_again("s", "postgresql://me:sesame@host/db")
    assert ask_again("my rows.jsonl", "my rows.jsonl") == "nas results --from 'my rows.jsonl'"
    assert ask_again("a,b", "a.jsonl,tables") == "nas results --from a.jsonl --from tables"


def test_an_error_without_what_it_is_of_is_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(screen(), [{"loss": 1.5, "loss_se": 0.25}], ["loss", "loss_se"], "both")
    assert "1.500±0.250" in capsys.readouterr().out
    print_records(screen(), [{"loss": 1.5, "loss_se": 0.25}], ["loss_se"], "alone")
    assert "0.25" in capsys.readouterr().out


def test_a_front_is_of_one_task_and_says_how_to_keep_one(capsys: pytest.CaptureFixture[str]) -> None:
    costs = Costs(params=10, macs=5, flops=10)
    rows = [a_row(task=task, seed=seed, costs=costs) for task in ("sight", "speech") for seed in (0, 1)]
    study = Study("both", "", rows)
    for draw in (lambda: show.front(study), study.plot):
        with pytest.raises(UserError, match=r"is of one task, .* \(sight, speech\): keep one with --where "):
            draw()
    assert capsys.readouterr().out == ""  # and not after a table of both
    assert len(study.where("task = 'speech'").front()) == 1


def test_a_study_without_rows_says_so_and_not_that_metrics_are_unknown() -> None:
    empty = Study("s", "", [a_row()]).where("depth > 99")
    with pytest.raises(UserError, match="study 's' has no row, or none that meets the condition"):
        show.front(empty)
