"""A study of these rows, and what questions to it print."""

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
    """What a question to the study prints as JSON."""

    def of(question_study: Study = study, **question: Any) -> list[dict[str, Any]]:
        print_query(question_study, **question, format=Format.JSON)
        records: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return records

    return of
