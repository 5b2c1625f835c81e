"""The pages on claims list every claim, with the current result of those that need no training."""

import re
from collections import Counter

from doc_pages import ROOT
from grouped import grouped
from nas.papers.claims.dilution import Dilution
from nas.papers.claims.experiments import cheap_experiments
from nas.papers.claims.scaling import Scaling
from nas.papers.claims.table_experiments import TABLE_EXPERIMENTS
from nas.papers.claims.training_experiments import ARCHITECTURE_PAIRS

STUDIES = ROOT / "docs" / "studies"
PAGE, TABLE = ((STUDIES / name).read_text() for name in ("claims.md", "claims-table.md"))
VERDICTS = ("agrees", "contradicts", "not distinguishable")
PAPER_SECTIONS = ("DeepCrossAttention", "ANCRe", "Residual Matrix Transformers", "Leaner Transformers")
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.splitlines()
    if line.startswith("| ") and line.rstrip(" |").endswith(VERDICTS)
]


def test_table_lists_every_claim_without_training() -> None:
    lines = Counter((line[0], line[1], line[2]) for line in LINES if len(line) == 7)
    claims = [claim for experiment in cheap_experiments() for claim in experiment.claims]
    assert [c.name for c in claims if lines[c.source, c.statement, f"{c.quantity}, {c.name}"] != 1] == []


def test_table_has_the_numbers_of_counted_and_recorded_claims() -> None:
    with grouped() as case:
        for experiment in (Scaling(), *TABLE_EXPERIMENTS):
            for finding in experiment.findings():
                with case(finding.claim.name):
                    (line,) = (line for line in LINES if line[2].endswith(f", {finding.claim.name}"))
                    mean, interval, values, verdict = line[3:]
                    assert (mean, values) == (f"{finding.mean:.3g}", str(len(finding.values)))
                    assert verdict == finding.verdict
                    assert experiment.exact or interval == f"{finding.low:.3g} .. {finding.high:.3g}"


def test_table_lists_every_claim_with_training() -> None:
    lines = {(line[0], line[1], line[2]) for line in LINES if len(line) == 6}
    assert lines == {(pair.paper, pair.claim.statement, pair.claim.quantity) for pair in ARCHITECTURE_PAIRS}


def test_totals_agree_with_the_table() -> None:
    without, with_training = (Counter(line[-1] for line in LINES if len(line) == cells) for cells in (7, 6))
    assert not with_training["contradicts"]
    totals = [[sum(count.values()), *(count[v] for v in VERDICTS if count[v])] for count in (without, with_training)]
    paragraphs = [[int(number) for number in re.findall(r"\b\d+\b", part)] for part in re.split("\n\n+", PAGE)]
    assert any(holds_in_order(numbers, [*totals[0], *totals[1]]) for numbers in paragraphs), totals


def test_counts_of_each_paper_agree_with_the_table() -> None:
    counts = re.findall(r"^\| (.+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    sections = {part.partition("\n")[0]: part for part in TABLE.split("\n## ")}
    with grouped() as case:
        for (name, *numbers), section in zip(counts, PAPER_SECTIONS, strict=False):
            with case(name):
                verdicts = Counter(
                    line.split("|")[-2].strip() for line in sections[section].splitlines() if "|" in line
                )
                values = [verdicts[verdict] for verdict in VERDICTS]
                assert [sum(values), *values] == [int(number) for number in numbers]


def holds_in_order(numbers: list[int], subsequence: list[int]) -> bool:
    """Whether `numbers` contains `subsequence` in this order."""
    remaining = iter(numbers)
    return all(number in remaining for number in subsequence)


def test_page_has_the_batches_of_figure_1() -> None:
    (batches,) = re.findall(r"(\d+) batches", Dilution.setting)
    assert f"{batches} batches" in PAGE
