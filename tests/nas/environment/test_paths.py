"""Names of files."""

from pathlib import Path

from nas.environment.paths import slug
from nas.store.locks import only_writer


def test_valid_file_name_stays_the_same() -> None:
    names = ["study", "a-b", "2026.11", "größer"]
    assert [*map(slug, names)] == names


def test_studies_have_distinct_file_names(tmp_path: Path) -> None:
    names = ["a-b", "a b", "a/b", "../a", ".a", "a", "a(b)", "a(b"]
    assert len({slug(name) for name in names}) == len(names)
    assert not any(character in slug(name) for name in names for character in "/ ()")
    url = f"sqlite:///{tmp_path}/s.db"
    with only_writer(url, "a b"), only_writer(url, "a-b"):
        pass
