"""Searches that begin at the same moment in one store."""

import pytest

from real_searches import Place


@pytest.mark.slow
def test_several_searches_create_their_store_at_once(place: Place) -> None:
    searches = [place.begin("--study", f"s{number}", "--trials", "2") for number in range(6)]
    results = [place.wait(search) for search in searches]
    assert [status for status, _ in results] == [0] * 6, results
    assert all(len(place.rows(f"s{number}")) == 2 for number in range(6))


def test_study_has_one_coordinator_for_all_names_of_its_store(place: Place) -> None:
    assert place.search("--trials", "1")[0] == 0
    (place.folder / "link.db").symlink_to(place.folder / "store" / "studies.db")
    other = f"sqlite:///{place.folder}/link.db"
    searches = [place.begin(), place.begin("--storage", other)]
    outcomes = sorted(place.wait(search) for search in searches)
    assert [status for status, _ in outcomes] in ([0, 2], [0, 0])  # the second may have come when the first was done
    assert all(status == 0 or "studies.db" in output.splitlines()[-1] for status, output in outcomes)
    assert len(place.rows()) == 4
