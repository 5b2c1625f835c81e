"""Folders in which real searches run; their processes end with the test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from real_searches import Place, fork_process, start_process


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A folder of searches, whose processes end with the test and whose logs are printed.

    Searches on Ray start in new processes, because Ray inspects its process.
    """
    here = Place(tmp_path, start_process if request.path.name == "test_ray.py" else fork_process)
    yield here
    for process in here.processes:
        process.send_signal(9)
        process.wait()
    for log in here.folder.glob("said-*"):
        print(log.read_text(errors="replace"))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Place:
    """A second folder, for an undisturbed search."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Place(folder, fork_process)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests here as chaos tests."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("chaos")
