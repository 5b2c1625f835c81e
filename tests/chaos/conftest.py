"""Places where real searches run, whose processes are ended with the test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from real_searches import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place whose processes are ended with the test; what they said is shown where the test fails."""
    here = Place(tmp_path)
    yield here
    for process in here.begun:
        process.send_signal(9)
        process.wait()
    for said in here.folder.glob("said-*"):
        print(said.read_text(errors="replace"))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Place:
    """Another place, for a search to which nothing happens."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Place(folder)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here takes real processes, and so minutes."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("chaos")
