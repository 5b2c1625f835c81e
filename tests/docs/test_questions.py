"""The ten questions: each command of the page runs, and gives the columns and the answer that the page shows."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from doc_pages import ROOT
from grouped import grouped
from nas.cli.main import app
from nas.environment.paths import DEFAULT_STORE
from nas.store.store import Store
from results.records.sources import table_paths
from toy_rows import LITTLE, a_row

PAGE = (ROOT / "docs" / "guides" / "questions.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^## \d+\. (.+)\n\n    nas (.+)\n\n```text\n((?:.+\n)+)```$", PAGE, re.MULTILINE)

Records = list[dict[str, Any]]


def ascends(records: Records, column: str, sign: float = 1.0) -> bool:
    values = [sign * record[column] for record in records]
    return values == sorted(values)


def is_best_under_a_megaflop(records: Records) -> bool:
    topologies = {record["topology"] for record in records}
    return len(topologies) == len(records) == 20 and all(r["flops"] <= 1e6 and r["seeds"] == 3 for r in records)


def is_gain_of_depth(records: Records) -> bool:
    return {r["value"] for r in records} == {*"12346"} and all(
        r["flops_ratio"] == 1 and r["params_ratio"] >= 1 and (r["value"] == "1" or r["verdict"] == "better")
        for r in records
    )


def is_gain_of_rmt(records: Records) -> bool:
    rmt, resnet = records
    costs = 0.9 < rmt["params_ratio"] < 1.1 and rmt["flops_ratio"] > 1 and rmt["time_ratio"] > 1
    return (rmt["value"], rmt["verdict"], resnet["difference"]) == ("rmt", "better", 0) and costs


PLAUSIBLE: Mapping[str, Callable[[Records], bool]] = {
    "best under": is_best_under_a_megaflop,
    "equal FLOPs": is_gain_of_depth,
    "RMT beat": is_gain_of_rmt,
    "cheapest": lambda records: ascends(records, "flops") and all(r["accuracy"] >= 0.85 for r in records),
    "How long": lambda records: len(records) == 6 and ascends(records, "wall_s", -1) and all(r["n"] for r in records),
    "validation and test": lambda records: all(abs(r["accuracy"] - r["test_accuracy"]) < 0.1 for r in records),
    "learning rate": lambda records: {r["topology"]: r["recipe_lr"] for r in records}.items() >= {("rmt", 0.00356)},
    "failed": lambda records: [record["status"] for record in records] == ["failed"],
}
"""Part of a question -> whether its records are a plausible answer; other questions have no records."""


def table_of(text: str) -> tuple[list[list[str]], list[str]]:
    """The words of the lines between title and rule, and the first word of each line below."""
    lines = text.splitlines()
    rule = next((i for i, line in enumerate(lines) if line.startswith("─")), 0)
    return [line.split() for line in lines[1:rule]], [line.split()[0] for line in lines[rule + 1 :] if line.strip()]


def answer(words: list[str]) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return str(done.stdout)


@pytest.fixture
def _small_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store with a failed and a complete row in an empty folder."""
    monkeypatch.chdir(tmp_path)
    store = Store(DEFAULT_STORE, make=True)
    store.add(a_row(status="failed", metrics={}, error="Diverged: the loss is not finite at step 6 of 33"), "small")
    store.add(a_row(architecture=LITTLE.with_fields({"depth": 2})), "small")


@pytest.mark.usefixtures("_small_study")
def test_each_question_has_its_answer() -> None:
    assert len(QUESTIONS) == 10
    with grouped() as case:
        for question, command, shown in QUESTIONS:
            with case(question):
                words = shlex.split(command)
                printed = answer(words)
                (headings, first), (shown_headings, shown_first) = table_of(printed), table_of(shown)
                assert (headings, first[: len(shown_first)]) == (shown_headings, shown_first)
                checks = [check for part, check in PLAUSIBLE.items() if part in question]
                for check in checks:
                    assert check(json.loads(answer([*words, "--format", "json"])))
                assert checks or words[0] in ("front", "list")


@pytest.mark.usefixtures("_small_study")
def test_front_and_tables_are_listed() -> None:
    commands = {words[0]: words for _, command, _ in QUESTIONS for words in [shlex.split(command)]}
    title, *lines = answer(commands["front"]).splitlines()
    flops = [int(cost) for line in lines for cost in re.findall(r" (\d+)k ", line)]
    assert int(title.split()[0]) == sum(line.startswith("*  ") for line in lines) < len(flops)
    assert max(flops) <= 300
    assert {*table_paths()} <= {*answer(commands["list"]).split()}
