"""Samplers compared on a recorded table; every figure is computed again in another way."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import nas
from command_line import Command
from expect import raises
from grouped import grouped
from nas.analysis.simulation import replay
from nas.analysis.tournament import Tournament, expected_front, front_share, trial_counts, trials_for
from nas.budget.bounds import Feasible
from results.records.row import Direction, Row
from results.stats.true_front import TrueFront
from search_spaces.spaces.enumerated import enumerated_space
from search_spaces.support.errors import Kind
from toy_rows import LITTLE
from toy_tables import a_table, at, table_rows, training_row, write_table

DIRECTIONS: dict[str, Direction] = {"accuracy": "max", "flops": "min"}


def quantile(values: Sequence[float], share: float) -> float:
    """The quantile by linear interpolation between the values in order."""
    ascending, position = sorted(values), share * (len(values) - 1)
    low = int(position)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (position - low) * (ascending[high] - ascending[low])


def area(rows: list[Row], architectures: set[Any]) -> float:
    """The area under the staircase of test accuracies over FLOPs, from a tenth below the worst row."""
    tests, ends = [row.test["accuracy"] for row in rows], sorted({row.costs.flops or 0 for row in rows})
    worst = min(tests) - (max(tests) - min(tests)) / 10
    ends.append(ends[-1] + (ends[-1] - ends[0]) / 10)  # type: ignore[arg-type]
    groups = [[row for row in rows if row.architecture == architecture] for architecture in architectures]
    means = [(group[0].costs.flops or 0, fmean(row.test["accuracy"] for row in group)) for group in groups]
    total = 0.0
    for low, high in pairwise(ends):
        total += (high - low) * max(0.0, max((mean for cost, mean in means if cost <= low), default=worst) - worst)
    return total


NOISY = table_rows(noise=0.1)


@pytest.fixture(scope="module", autouse=True)
def few_draws() -> Iterator[None]:
    """Use few draws: they estimate how sure a front is, which no test here uses, and take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("results.stats.front_probability.DRAWS", 64)
        yield


@pytest.fixture(scope="module")
def tournament(tmp_path_factory: pytest.TempPathFactory) -> Tournament:
    """Two samplers, each with three searches of eight trainings."""
    table = write_table(tmp_path_factory.mktemp("table"), NOISY)
    return nas.tournament(table, samplers="random,nsga2", seeds=3, trials=8, budget="flops<=3000")


def test_every_figure_equals_a_naive_computation(tournament: Tournament) -> None:
    inside = [row for row in NOISY if (row.costs.flops or 0) <= 3000]
    table = a_table(*inside)
    space = enumerated_space("replay:toys", a_table(*NOISY).architectures)
    members = Feasible(space, tuple(candidate for candidate in space if candidate.architecture in table.architectures))
    total_area = area(inside, set(table.architectures))
    for sampler in ("random", "nsga2"):
        searches = [replay(table, members, DIRECTIONS, sampler, seed, 8) for seed in range(3)]
        for number, after in enumerate((1, 2, 4, 6, 8)):
            shares = [area(inside, set(expected_front(rows[:after], DIRECTIONS))) / total_area for rows in searches]
            (record,) = [
                record for record in tournament.records if (record["sampler"], record["trainings"]) == (sampler, after)
            ]
            expected = [quantile(shares, share) for share in (0.25, 0.5, 0.75)]
            assert [record[f"hypervolume{end}"] for end in ("_q1", "", "_q3")] == pytest.approx(expected)
            assert tournament.shares[sampler][:, number] == pytest.approx(shares)
            assert record["searches"] == 3
    assert len(tournament.records) == 10


def test_validation_decides_the_front_and_test_its_share() -> None:
    small, hidden, large = (LITTLE.with_fields({"depth": depth}) for depth in (1, 2, 4))
    rows = [training_row(architecture, seed) for architecture in (small, hidden, large) for seed in (0, 1)]
    rows = [replace(row, metrics=at(0.1), test=at(2.0)) if row.architecture == hidden else row for row in rows]
    assert set(expected_front(rows, DIRECTIONS)) == {small, large}
    assert expected_front([], DIRECTIONS) == []
    truth = TrueFront(a_table(*table_rows()), DIRECTIONS)
    seed_rows = [row for row in table_rows() if row.seed == 0]
    assert front_share(seed_rows, truth, DIRECTIONS, 0) == 0
    assert 0 < front_share(seed_rows, truth, DIRECTIONS, 9) <= front_share(seed_rows, truth, DIRECTIONS, 36) <= 1


def test_more_trainings_find_more_and_seeds_repeat(tmp_path: Path) -> None:
    arguments = {"samplers": ["random"], "seeds": 1, "trials": 36}
    first, repeat = (nas.tournament(write_table(tmp_path), **arguments) for _ in range(2))  # type: ignore[arg-type]
    assert first.records == repeat.records
    assert [record["trainings"] for record in first.records] == [4, 9, 18, 27, 36]
    assert first.records[-1]["hypervolume"] > 0.97  # all of them were tried
    assert first.records[0]["hypervolume"] < 0.9
    assert list(first.to_pandas()["hypervolume"]) == [record["hypervolume"] for record in first.records]
    assert "<table" in first._repr_html_()


def test_picture_has_a_line_and_a_band_per_sampler(tournament: Tournament, tmp_path: Path) -> None:
    (axes,) = tournament.plot(tmp_path / "t.png").axes
    assert [line.get_label() for line in axes.lines] == ["random", "nsga2"]
    for line, sampler in zip(axes.lines, ("random", "nsga2"), strict=True):
        medians = [record["hypervolume"] for record in tournament.records if record["sampler"] == sampler]
        assert list(line.get_ydata()) == medians
        assert list(line.get_xdata()) == [1, 2, 4, 6, 8]
    assert len(axes.collections) == 2
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_default_trials_and_checkpoints() -> None:
    table = a_table()
    assert (trials_for(table, None), trials_for(table, 108)) == (18, 108)
    assert trial_counts(100) == [10, 25, 50, 75, 100]
    assert trial_counts(2) == [1, 2]
    with raises("out-of-range", option="--trials", value=109, most=108):
        trials_for(table, 109)


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"samplers": "randon"}, "unknown-name", {"option": "sampler", "value": "randon", "nearest": "random"}),
    ({"samplers": ""}, "missing-value", {"option": "--samplers"}),
    ({"seeds": 0}, "out-of-range", {"option": "--seeds", "value": 0, "least": 1}),
    ({"seeds": -1}, "out-of-range", {"option": "--seeds", "value": -1}),
    ({"trials": 0}, "out-of-range", {"option": "--trials", "value": 0}),
    ({"objectives": "acuracy,flops"}, "unknown-name", {"option": "objective", "nearest": "accuracy"}),
    ({"objectives": "test_accuracy"}, "unsupported", {"option": "objective", "value": "test_accuracy"}),
    ({"budget": "params<=1"}, "infeasible", {"space": "replay:toys", "budget": "params<=1"}),
    ({"table": "digits-vit"}, "unsupported", {"option": "TABLE", "value": "digits-vit"}),
    ({"table": "replay:nothing"}, "unknown-name", {"option": "table", "value": "nothing"}),
    ({"samplers": "random,nsga2,random"}, "duplicate", {"option": "--samplers", "value": "random"}),
]


def test_impossible_tournaments_are_errors(tmp_path: Path) -> None:
    possible = {"table": write_table(tmp_path), "samplers": "random", "seeds": 1, "trials": 4}
    with grouped() as case:
        for change, kind, fields in MISTAKES:
            with case(str(change)), raises(kind, **fields):
                nas.tournament(**{**possible, **change})


def test_command_prints_a_table_and_writes_files(command: Command, tmp_path: Path) -> None:
    line = ["tournament", write_table(tmp_path), "--samplers", "random", "--seeds", "2", "--trials", "4"]
    files = ["--plot", str(tmp_path / "t.svg"), "--format", "csv", "--output", str(tmp_path / "t.csv")]
    result = command(*line, *files)
    assert result.returncode == 0, result.stderr
    head, *lines = (tmp_path / "t.csv").read_text().splitlines()
    assert head.replace('"', "") == "sampler,trainings,hypervolume,hypervolume_q1,hypervolume_q3,searches"
    assert [row.split(",")[1] for row in lines] == ["1", "2", "3", "4"]
    assert (tmp_path / "t.svg").exists()
    command("-q", *line[:3], "randm").assert_error("unknown-name", value="randm", nearest="random")
