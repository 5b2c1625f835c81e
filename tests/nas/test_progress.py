"""What is said while trials end."""

from dataclasses import replace
from typing import Any

import pytest

import nas
from nas.progress import Progress
from toy_searches import TOYS


def test_a_training_that_goes_on_is_counted_once(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    row = nas.evaluate(f"{TOYS}:Toy", preset="smoke", storage=asked["storage"])
    held, other = replace(row, status="pruned"), replace(row, seed=1)
    capsys.readouterr()
    with Progress("toy", ["accuracy"], ["ended before"], 3) as progress:
        for one in (held, other, row):
            progress.add(one)
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in said] == ["2/3", "3/3", "3/3"]
    assert ["pruned: " in line for line in said] == [True, False, False]
