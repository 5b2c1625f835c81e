"""The index of the shipped tables: index.toml and README.md name every table, and the commands parse."""

import gzip
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grouped import grouped
from results.records import jsonl
from results.records.sources import table_paths
from test_commands import calls, refusal

TABLES = Path(__file__).parents[2] / "results" / "tables"
INDEX: dict[str, dict[str, Any]] = tomllib.loads((TABLES / "index.toml").read_text())
LINES = re.findall(r"^\| `([\w-]+)` \| (.+) \| (\d+) \| (\S+) \|$", (TABLES / "README.md").read_text(), re.MULTILINE)


def texts(path: Path) -> list[str]:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()


def commands() -> Iterator[tuple[str, str]]:
    return ((name, command) for name, entry in INDEX.items() for command in entry["command"])


def test_index_names_every_table_and_no_other() -> None:
    assert set(INDEX) == set(table_paths())
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
    for name, path in table_paths().items():
        lines = texts(path)
        (task,) = {re.match(r'{"task": "([^"]+)"', line)[1] for line in lines}  # type: ignore[index]
        expected.add((name, INDEX[name]["question"], str(len(lines)), task))
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
    for name, path in table_paths().items():
        made = {str(row.provenance["command"]) for row in jsonl.read(path)[0]}
        assert made <= known, name
        assert made & set(INDEX[name]["command"]), name
