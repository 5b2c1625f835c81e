"""A search ends after three failures alike, and never after anything else."""

from dataclasses import replace

import pytest

from expect import raises
from nas.engine.repeated_failures import MAX_ALIKE, RepeatedFailures
from nas.evaluation.failures import OUT_OF_MEMORY, TIMED_OUT
from results.records.row import Row
from toy_rows import a_row


def failure(error: str, seed: int = 0) -> Row:
    return replace(a_row(seed=seed), status="failed", metrics={}, test={}, error=error)


def test_failures_that_differ_in_numbers_alone_end_the_search() -> None:
    listener = RepeatedFailures("s")
    for seed in range(MAX_ALIKE - 1):
        listener(failure(f"ValueError: {seed} of 7 (task.py, line 12)", seed))
    last = failure("ValueError: 9 of 7 (task.py, line 12)", 9)
    with raises("failed", study="s", identity=last.identity()):
        listener(last)


@pytest.mark.parametrize(
    "others",
    [[a_row()], [failure("KeyError: 'x'")], [failure(f"{OUT_OF_MEMORY}: no")], [failure(f"{TIMED_OUT}: no")]],
)
def test_any_other_end_lets_the_search_continue(others: list[Row]) -> None:
    listener = RepeatedFailures("s")
    for row in [*others, *(failure("ValueError: bad", seed) for seed in range(5))]:
        listener(row)


def test_networks_over_a_measured_bound_do_not_count() -> None:
    listener = RepeatedFailures("s")
    for row in (failure("KeyError: 1"), replace(failure("too slow"), status="over-budget"), failure("KeyError: 2")):
        listener(row)
    with raises("failed", study="s"):
        listener(failure("KeyError: 3"))
