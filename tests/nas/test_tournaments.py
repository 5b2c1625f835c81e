"""Samplers on a recorded table: every figure again by another way, and errors in a line."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import nas
from nas.budget import Feasible
from nas.simulation import replay
from nas.tournaments import lengths, reported, trials_for, worth
from own_process import in_own_process
from results.row import Direction, Row
from results.true_front import TrueFront
from search_spaces.errors import UserError
from search_spaces.listed import listed_space
from toy_rows import LITTLE
from toy_tables import a_table, at, recorded, trained, written

WAYS: dict[str, Direction] = {"accuracy": "max", "flops": "min"}


def quantile(values: Sequence[float], share: float) -> float:
    """By linear interpolation between the values in order."""
    ordered, place = sorted(values), share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def area(rows: list[Row], architectures: set[Any]) -> float:
    """What accuracies on test cover over FLOPs, from a tenth below the worst of any row on, as a staircase's steps."""
    tests, ends = [row.test["accuracy"] for row in rows], sorted({row.costs.flops or 0 for row in rows})
    worst = min(tests) - (max(tests) - min(tests)) / 10
    ends.append(ends[-1] + (ends[-1] - ends[0]) / 10)  # type: ignore[arg-type]
    total = 0.0
    for low, high in pairwise(ends):
        own = [row for row in rows if row.architecture in architectures and (row.costs.flops or 0) <= low]
        means = [fmean(row.test["accuracy"] for row in own if row.architecture == one.architecture) for one in own]
        total += (high - low) * max(0.0, max(means, default=worst) - worst)
    return total


def test_every_figure_is_what_its_docstring_says(tmp_path: Path) -> None:
    rows = recorded(noise=0.1)
    played = nas.tournament(written(tmp_path, rows), samplers="random,nsga2", seeds=4, trials=8, budget="flops<=3000")
    inside = [row for row in rows if (row.costs.flops or 0) <= 3000]
    table = a_table(*inside)
    space = listed_space("replay:toys", a_table(*rows).architectures)
    members = Feasible(space, tuple(one for one in space if one.architecture in table.architectures))
    whole = area(inside, set(table.architectures))
    for sampler in ("random", "nsga2"):
        searches = [replay(table, members, WAYS, sampler, seed, 8) for seed in range(4)]
        for number, after in enumerate((1, 2, 4, 6, 8)):
            shares = [area(inside, set(reported(found[:after], WAYS))) / whole for found in searches]
            (record,) = [one for one in played.records if (one["sampler"], one["trainings"]) == (sampler, after)]
            expected = [quantile(shares, share) for share in (0.25, 0.5, 0.75)]
            assert [record[f"hypervolume{end}"] for end in ("_q1", "", "_q3")] == pytest.approx(expected)
            assert played.shares[sampler][:, number] == pytest.approx(shares)
            assert record["searches"] == 4
    assert len(played.records) == 10


def test_a_front_is_reported_by_validation_and_judged_by_test() -> None:
    small, hidden, large = (LITTLE.changed({"depth": depth}) for depth in (1, 2, 4))
    rows = [trained(one, seed) for one in (small, hidden, large) for seed in (0, 1)]
    rows = [replace(row, metrics=at(0.1), test=at(2.0)) if row.architecture == hidden else row for row in rows]
    assert set(reported(rows, WAYS)) == {small, large}
    assert reported([], WAYS) == []
    truth = TrueFront(a_table(*recorded()), WAYS)
    found = [row for row in recorded() if row.seed == 0]
    assert worth(found, truth, WAYS, 0) == 0
    assert 0 < worth(found, truth, WAYS, 9) <= worth(found, truth, WAYS, 36) <= 1


def test_more_trainings_find_more_and_the_same_seed_the_same(tmp_path: Path) -> None:
    asked = {"samplers": ["random"], "seeds": 3, "trials": 36}
    first, again = (nas.tournament(written(tmp_path), **asked) for _ in range(2))  # type: ignore[arg-type]
    assert first.records == again.records
    assert [record["trainings"] for record in first.records] == [4, 9, 18, 27, 36]
    assert first.records[-1]["hypervolume"] > 0.97  # all of them were tried
    assert first.records[0]["hypervolume"] < 0.9
    assert list(first.to_pandas()["hypervolume"]) == [record["hypervolume"] for record in first.records]
    assert "<table" in first._repr_html_()


def test_a_picture_has_a_line_and_a_band_for_each_sampler(tmp_path: Path) -> None:
    played = nas.tournament(written(tmp_path), samplers="random,nsga2", seeds=2, trials=8)
    (axes,) = played.plot(tmp_path / "t.png").axes
    assert [line.get_label() for line in axes.lines] == ["random", "nsga2"]
    for line, sampler in zip(axes.lines, ("random", "nsga2"), strict=True):
        medians = [one["hypervolume"] for one in played.records if one["sampler"] == sampler]
        assert list(line.get_ydata()) == medians
        assert list(line.get_xdata()) == [1, 2, 4, 6, 8]
    assert len(axes.collections) == 2
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_how_many_trainings_and_where_they_are_looked_at() -> None:
    table = a_table()
    assert (trials_for(table, None), trials_for(table, 108)) == (18, 108)
    assert lengths(100) == [10, 25, 50, 75, 100]
    assert lengths(2) == [1, 2]
    with pytest.raises(UserError, match="at most 108, the trainings of 'toys'"):
        trials_for(table, 109)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"samplers": "randon"}, "unknown sampler 'randon'. Did you mean 'random'"),
        ({"samplers": ""}, "needs a sampler and a seed"),
        ({"seeds": 0}, "needs a sampler and a seed"),
        ({"seeds": -1}, "--seeds must be"),
        ({"trials": 0}, "--trials must be"),
        ({"objectives": "acuracy,flops"}, "Did you mean 'accuracy'"),
        ({"objectives": "test_accuracy"}, "never searched on"),
        ({"budget": "params<=1"}, "no architecture of space 'replay:toys' is within params<=1"),
        ({"table": "digits-vit"}, "replay:NAME or replay:FILE.jsonl, got 'digits-vit'"),
        ({"table": "replay:nothing"}, "unknown table 'nothing'"),
    ],
)
def test_what_cannot_be_played_is_said_in_a_line(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        nas.tournament(**{"table": written(tmp_path), "samplers": "random", "seeds": 1, "trials": 4, **change})
    assert "\n" not in str(caught.value)


def test_the_command_prints_a_table_and_writes_files(tmp_path: Path) -> None:
    line = ["tournament", written(tmp_path), "--samplers", "random", "--seeds", "2", "--trials", "4"]
    files = ["--plot", str(tmp_path / "t.svg"), "--format", "csv", "--output", str(tmp_path / "t.csv")]
    done = in_own_process(*line, *files)
    assert done.returncode == 0, done.stderr
    head, *lines = (tmp_path / "t.csv").read_text().splitlines()
    assert head.replace('"', "") == "sampler,trainings,hypervolume,hypervolume_q1,hypervolume_q3,searches"
    assert [one.split(",")[1] for one in lines] == ["1", "2", "3", "4"]
    assert (tmp_path / "t.svg").exists()
    done = in_own_process("-q", *line[:3], "randm")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "Did you mean 'random'" in done.stderr
    nothing = "import nas; nas.tournament; import nas.tournaments; assert callable(nas.tournament)"
    subprocess.run([sys.executable, "-c", nothing], check=True)


def test_a_sampler_is_asked_for_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="sampler 'random' is asked for twice"):
        nas.tournament(written(tmp_path, recorded()), samplers="random,nsga2,random", seeds=1, trials=2)
