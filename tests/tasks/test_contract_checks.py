"""What check_task finds wrong, with tasks that are wrong in one way each."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from search_spaces.architecture import Architecture
from tasks.base import Fitted, Task
from tasks.load import task_class
from tasks.recipe import Recipe
from tasks.run import Run
from tasks.splits import TensorSplits
from tasks.testing import (
    check_it_stops_and_goes_on,
    check_task,
    check_training_is_a_pure_function,
    check_what_is_measured_was_not_trained_on,
)

MOONS = task_class(f"{Path(__file__).parent}/moons.py:Moons")
TINY = Architecture(depth=1, width=8, hidden=8)
SMOKE = Recipe(steps=6, batch=50, lr=0.01, reports=3)


class Tiny(MOONS):  # type: ignore[misc, valid-type]
    """Moons in six steps."""

    presets = {"smoke": SMOKE, "proxy": SMOKE}  # noqa: RUF012


class KeepsNothing(Tiny):
    """Begins anew each time."""

    def fit(self, run: Run) -> Fitted:
        """As if there were no folder."""
        return super().fit(replace(run, folder=None))  # type: ignore[no-any-return]


class BeginsAnew(KeepsNothing):
    """Leaves a file that it never reads."""

    def fit(self, run: Run) -> Fitted:
        """As if there were no folder, and something in it until the end."""
        assert run.folder is not None
        note = run.folder / "note"
        note.write_text("no checkpoint")
        fitted = super().fit(run)
        if fitted.steps == SMOKE.steps:
            note.unlink()
        return fitted


class Deaf(Tiny):
    """Says the same whatever it is asked."""

    def fit(self, run: Run) -> Fitted:
        """Nothing is trained."""
        found: Mapping[str, float] = {metric.name: 0.5 for metric in self.metrics}
        return Fitted(steps=7, metrics=found, test=found)


class OneSeed(Tiny):
    """Ignores the seed, and nothing else."""

    def fit(self, run: Run) -> Fitted:
        """By seed 0."""
        return super().fit(replace(run, seed=0))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("task", "message"),
    [(KeepsNothing(), "must keep in run.folder"), (BeginsAnew(), "must not begin at its start, got 6 of 6 steps")],
    ids=["keeps nothing", "begins anew"],
)
def test_a_training_that_does_not_go_on_is_found(task: Task, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_it_stops_and_goes_on(task, TINY)


def test_a_training_that_depends_on_nothing_is_found() -> None:
    with pytest.raises(AssertionError, match="must depend on seed, architecture or recipe"):
        check_training_is_a_pure_function(Deaf(), TINY)


def test_numbers_that_happen_to_be_those_of_another_seed_are_none_of_its_business() -> None:
    check_training_is_a_pure_function(OneSeed(), TINY)


def test_a_training_that_reports_nothing_on_the_way_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    check_it_stops_and_goes_on(Deaf(), TINY)
    assert "nothing to stop at" in capsys.readouterr().out


@pytest.mark.parametrize("split", ["validation", "test"])
def test_what_was_trained_on_and_is_measured_is_found(split: str) -> None:
    class Leaking(Tiny):
        def load(self) -> TensorSplits:
            splits = super().load()
            assert isinstance(splits, TensorSplits)
            return replace(splits, **{split: splits.train})

    check_what_is_measured_was_not_trained_on(Tiny(), TINY)
    with pytest.raises(AssertionError, match=f"1000 of 1000 examples of {split} are in train as well"):
        check_what_is_measured_was_not_trained_on(Leaking(), TINY)


class Leaves(Tiny):
    """Ends the program as it reads its data."""

    def load(self) -> object:
        """Nothing."""
        raise SystemExit(0)


def test_a_task_that_ends_the_program_does_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match="must not end the program, and this one did with 0"):
        check_task(Leaves(), TINY)
    assert not capsys.readouterr().out.endswith("ok\n")
