"""Exports appear at their place only if they are complete."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from expect import raises
from nas.exporters.output import check_new_folder, new_file, new_folder


def fail_halfway(output: AbstractContextManager[Path], name: str) -> None:
    """Write a part of an export; then fail."""
    with output as partial:
        (partial / name).write_text("half")
        raise KeyError


def test_a_folder_has_the_files_and_their_usual_modes(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    for to in (tmp_path / "a" / "new", tmp_path / "empty"):
        if to.name == "empty":
            to.mkdir()
        with new_folder(to) as partial:
            assert not to.exists() or not any(to.iterdir())
            os.close(os.open(partial / "private", os.O_CREAT, 0o600))
        assert [path.name for path in to.iterdir()] == ["private"]
        assert (to / "private").stat().st_mode == (tmp_path / "usual").stat().st_mode
        assert [path.name for path in to.parent.iterdir() if path.suffix == ".partial"] == []


def test_a_failure_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fail_halfway(new_folder(tmp_path / "new"), "part")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_and_a_file_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    for path in (tmp_path / "folder", tmp_path / "folder" / "mine"):
        with raises("exists", option="--to", path=str(path)), new_folder(path):
            raise AssertionError
    check_new_folder(tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_file_is_replaced_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(KeyError):
        fail_halfway(new_file(file), "")
    assert file.read_text() == "old"
    with new_file(file) as partial:
        partial.write_text("new")
        partial.chmod(0o600)
    (tmp_path / "usual").touch()
    assert file.read_text() == "new"
    assert file.stat().st_mode == (tmp_path / "usual").stat().st_mode
