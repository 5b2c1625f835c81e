"""Matching: the hidden features that make two networks cost the same."""

from dataclasses import replace

import pytest

from nas.cost import cheap_counts
from nas.match import MATCHED, matched
from search_spaces.architecture import Architecture
from tasks.load import load_task

SHAPE = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=40)


def linear(architecture: Architecture) -> int:
    return 7 * architecture.hidden + 100


@pytest.mark.parametrize("target", [107, 108, 110, 111, 114, 240, 1000, 10**6])
def test_no_other_number_of_hidden_features_comes_nearer(target: int) -> None:
    found = matched(SHAPE, target, linear)
    best = min(abs(linear(replace(SHAPE, hidden=hidden)) - target) for hidden in range(1, 150_000))
    assert abs(linear(found) - target) == best
    assert replace(found, hidden=40) == SHAPE


def test_what_cannot_be_reached_is_approached() -> None:
    assert matched(SHAPE, 3, linear).hidden == 1
    assert matched(SHAPE, 10**12, linear).hidden == 2**24


@pytest.mark.parametrize("quantity", MATCHED)
@pytest.mark.parametrize("topology", ["dca(k=2)", "hyper", "rmt(keys=8)"])
def test_networks_of_a_task_are_matched_within_half_a_percent(topology: str, quantity: str) -> None:
    task = load_task("digits-vit", None)
    target = cheap_counts(task, task.base)[quantity]
    found = matched(replace(task.base, topology=topology), target, lambda one: cheap_counts(task, one)[quantity])
    assert cheap_counts(task, found)[quantity] == pytest.approx(target, rel=0.005)
