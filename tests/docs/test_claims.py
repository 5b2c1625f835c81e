"""The page of claims has every claim, and says of those that take no time what comes out of them now."""

import re
from collections import Counter

import pytest

from doc_pages import ROOT
from nas.claims import Experiment
from nas.claims.dilution import Dilution
from nas.claims.experiments import untrained
from nas.claims.recorded import RECORDED
from nas.claims.scaling import Scaling
from nas.claims.trained import COMPARED

PAGE = (ROOT / "docs" / "claims.md").read_text()
VERDICTS = ("agrees", "contradicts", "not distinguishable")
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and line.rstrip(" |").endswith(VERDICTS)
]


@pytest.mark.parametrize("experiment", list(untrained()), ids=lambda one: f"{one.paper}-{type(one).__name__}")
def test_every_claim_without_training_is_a_line(experiment: Experiment) -> None:
    said = [(line[0], line[1], line[2]) for line in LINES if len(line) == 7]
    for claim in experiment.claims:
        assert said.count((claim.source, claim.statement, f"{claim.quantity}, {claim.name}")) == 1


@pytest.mark.parametrize("experiment", [Scaling(), *RECORDED], ids=lambda one: f"{one.paper}-{type(one).__name__}")
def test_what_is_counted_or_recorded_is_what_is_said(experiment: Experiment) -> None:
    for finding in experiment.findings():
        (line,) = (line for line in LINES if line[2].endswith(f", {finding.claim.name}"))
        interval = "a count" if experiment.exact else f"{finding.low:.3g} .. {finding.high:.3g}"
        assert line[3:] == [f"{finding.mean:.3g}", interval, str(len(finding.values)), finding.verdict]


def test_every_claim_with_training_is_a_line() -> None:
    said = {(line[0], line[1], line[2]) for line in LINES if len(line) == 6}
    assert said == {(one.paper, one.claim.statement, one.claim.quantity) for one in COMPARED}


def test_the_totals_are_those_of_the_lines() -> None:
    without, with_training = (Counter(line[-1] for line in LINES if len(line) == cells) for cells in (7, 6))
    agree, contradict, neither = (without[verdict] for verdict in VERDICTS)
    told = (
        f"{sum(without.values())} claims without training {agree} agree, {contradict} contradict and {neither} cannot"
    )
    assert told in PAGE
    agree, contradict, neither = (with_training[verdict] for verdict in VERDICTS)
    assert not contradict
    assert f"{sum(with_training.values())} with training at `smoke`, {agree} agree and {neither} cannot" in PAGE


def test_what_figure_1_is_tried_for_is_said() -> None:
    (batches,) = re.findall(r"after (\d+) batches where the figure", PAGE)
    assert f"{batches} batches" in Dilution.setting
