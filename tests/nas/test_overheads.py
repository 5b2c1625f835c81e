"""Printed overheads: of topologies that there are, and what their papers' numbers give."""

import csv
import re
from importlib.resources import files

import pytest

from nas.overheads import printed
from search_spaces.topologies.registry import load

LINES = list(csv.DictReader(files("nas").joinpath("overheads.csv").read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize("line", LINES, ids=[line["topology"] for line in LINES])
def test_an_overhead_is_of_a_topology_and_follows_from_its_source(line: dict[str, str]) -> None:
    load(line["topology"])
    assert printed(line["topology"]) == float(line["step_over_resnet"])
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", line["source"])]
    if numbers:  # rates or seconds: either way the larger over the smaller
        assert max(numbers) / min(numbers) == pytest.approx(float(line["step_over_resnet"]), abs=6e-4)


def test_what_no_paper_prints_is_none() -> None:
    assert printed("grn-v3") is None
