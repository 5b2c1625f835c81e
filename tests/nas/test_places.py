"""Names of files."""

from pathlib import Path

import pytest

from nas.places import slug
from nas.storage.locks import only_writer


@pytest.mark.parametrize("name", ["study", "a-b", "2026.11", "größer"])
def test_a_name_that_can_be_a_file_name_is_one(name: str) -> None:
    assert slug(name) == name


def test_studies_have_file_names_of_their_own(tmp_path: Path) -> None:
    names = ["a-b", "a b", "a/b", "../a", ".a", "a", "a(b)", "a(b"]
    assert len({slug(name) for name in names}) == len(names)
    assert not any(character in slug(name) for name in names for character in "/ ()")
    url = f"sqlite:///{tmp_path}/s.db"
    with only_writer(url, "a b"), only_writer(url, "a-b"):
        pass
