"""The files that identify a task in a file."""

import os
import shutil
from pathlib import Path

import pytest

from tasks.local_sources import local_sources, source_digest

FILES = {
    "task.py": "import json\nimport torch\nfrom tasks import Recipe\nfrom layers import Layer\nimport lib.data\n",
    "layers.py": "def build():\n    from norms import norm\n",
    "norms.py": "import task\n",  # in a circle
    "lib/data.py": "from . import readers\nfrom .. import outside\n",  # lib is a namespace package
    "lib/readers/__init__.py": "from .csv import read\nfrom .missing import nothing\n",
    "lib/readers/csv.py": "",
    "lib/unused.py": "",
    "unused.py": "",
    "tasks.py": "",  # the installed package is imported in its place
}

IMPORTED = {"task.py", "layers.py", "norms.py", "lib/data.py", "lib/readers/__init__.py", "lib/readers/csv.py"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "outside.py").touch()
    return tmp_path / "project"


def names(file: Path) -> list[str]:
    return [path.relative_to(file.parent.resolve()).as_posix() for path in local_sources(file)]


def test_sources_are_the_files_that_are_imported(folder: Path) -> None:
    assert names(folder / "task.py") == ["task.py", *sorted(IMPORTED - {"task.py"})]


def test_imports_above_the_root_are_not_sources(folder: Path) -> None:
    for dots in range(1, 30):
        (folder / "other.py").write_text(f"from {'.' * dots}layers import build\n")
        assert ("layers.py" in names(folder / "other.py")) == (dots == 1)


def test_a_folder_that_is_a_package_may_be_named(folder: Path) -> None:
    (folder / "other.py").write_text("from project.layers import build\nimport project.lib.readers.csv\n")
    assert {"layers.py", "norms.py", "lib/readers/csv.py"} <= {*names(folder / "other.py")}
    assert "unused.py" not in names(folder / "other.py")


@pytest.mark.parametrize("name", sorted(FILES))
def test_an_edit_changes_the_digest_if_the_file_is_imported(folder: Path, name: str) -> None:
    before = source_digest(folder / "task.py")
    with (folder / name).open("a") as file:
        file.write("# edited\n")
    assert (source_digest(folder / "task.py") != before) == (name in IMPORTED)


def test_the_digest_is_equal_in_another_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    monkeypatch.chdir(copy)
    assert source_digest(Path("task.py")) == source_digest(folder / "task.py")


def test_a_module_that_is_moved_or_broken_is_another_text(folder: Path) -> None:
    before = source_digest(folder / "task.py")
    (folder / "norms.py").write_text("import task (")
    broken = source_digest(folder / "task.py")
    os.rename(folder / "norms.py", folder / "lib" / "norms.py")
    assert len({before, broken, source_digest(folder / "task.py")}) == 3
