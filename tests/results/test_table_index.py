"""The index of the shipped tables: index.toml and README.md name every table, and the commands parse."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from grouped import grouped
from results.records import jsonl
from results.records.row import Row
from results.records.sources import table_paths
from test_commands import calls, refusal

TABLES = Path(__file__).parents[2] / "results" / "tables"
INDEX: dict[str, dict[str, Any]] = tomllib.loads((TABLES / "index.toml").read_text())
LINES = re.findall(r"^\| `([\w-]+)` \| (.+) \| (\d+) \| (\S+) \|$", (TABLES / "README.md").read_text(), re.MULTILINE)


@cache
def tables() -> dict[str, list[Row]]:
    """Table -> its rows."""
    return {name: jsonl.read(path)[0] for name, path in table_paths().items()}


def commands() -> Iterator[tuple[str, str]]:
    return ((name, command) for name, entry in INDEX.items() for command in entry["command"])


def test_index_names_every_table_and_no_other() -> None:
    assert set(INDEX) == set(tables())
    for name, entry in INDEX.items():
        assert {"question", "command"} <= set(entry) <= {"question", "note", "command"}, name
        assert entry["question"].endswith("?"), name
        assert entry["command"], name


def test_notes_name_tables_that_exist() -> None:
    notes = " ".join(entry.get("note", "") for entry in INDEX.values())
    assert set(re.findall(r"[\w-]+-(?:topologies|tuned)\b", notes)) <= set(INDEX)


def test_readme_lists_every_table_with_its_question_rows_and_task() -> None:
    assert len(LINES) == len({name for name, *_ in LINES})
    expected = set()
    for name, rows in tables().items():
        (task,) = {row.task for row in rows}
        expected.add((name, INDEX[name]["question"], str(len(rows)), task))
    assert set(LINES) == expected


def test_commands_parse_and_are_of_the_task() -> None:
    tasks = {name: task for name, _, _, task in LINES}
    with grouped() as case:
        for name, command in commands():
            with case(name):
                (words,) = calls(command)
                assert refusal(words) is None
                assert words[0] in ("compare", "search")
                assert words[1] == tasks[name]


def test_rows_were_made_by_commands_of_the_index() -> None:
    known = {command for _, command in commands()}
    for name, rows in tables().items():
        made = {str(row.provenance["command"]) for row in rows}
        assert made <= known, name
        assert made & set(INDEX[name]["command"]), name
