"""Places where real searches run, whose processes are ended with the test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from real_searches import Place, fork_process, start_process


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place whose processes are ended with the test; what they said is shown where the test fails.

    Searches on Ray are begun as a shell begins them: Ray looks at how its process began.
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
    """Another place, for a search to which nothing happens."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Place(folder, fork_process)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here takes real processes, and so minutes."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("chaos")
