"""A study of toy rows, and answers to questions about it."""

import json
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.cli.printers.query import print_query
from nas.report.format import Format
from nas.report.study import Study
from nas.store.store import Store
from result_rows import Ask, rows


@pytest.fixture
def study(tmp_path: Path) -> Study:
    url = f"sqlite:///{tmp_path}/studies.db"
    store = Store(url, make=True)
    for row in rows():
        store.add(row, "s")
    return nas.load("s", storage=url)


@pytest.fixture
def ask(study: Study, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Ask the study a question; return the records, which are printed as JSON."""

    def answer(question_study: Study = study, **question: Any) -> list[dict[str, Any]]:
        print_query(question_study, **question, format=Format.JSON)
        records: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return records

    return answer
