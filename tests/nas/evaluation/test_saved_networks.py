"""The saved network that a key names."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from expect import raises
from nas.evaluation.saved_networks import network_folder
from nas.store.store import Store
from search_spaces.architecture.checkpoint import RECORD
from toy_rows import LITTLE, a_row


def test_key_names_the_only_row_with_a_saved_network(tmp_path: Path) -> None:
    first, other = a_row(), a_row(architecture=replace(LITTLE, depth=7))
    failure = a_row(seed=9, status="failed", error="no")
    rows = [first, other, failure]
    with closing(Store(f"sqlite:///{tmp_path}/studies.db", make=True)) as store:

        def folder(key: str) -> Path:
            return network_folder(store, "s", rows, key)

        with raises("missing-file", option="KEY", value=other.architecture.key):
            folder(other.architecture.key)
        for row in (first, other):
            (store.network(row.identity()) / RECORD).parent.mkdir(parents=True)
            (store.network(row.identity()) / RECORD).write_text("{}")
        assert folder(other.architecture.key[:8]) == folder(other.identity()) == store.network(other.identity())
        assert folder(first.architecture.key) == store.network(first.identity())
        with raises("missing-value", option="KEY"):
            folder("")
        with raises("unknown-name", value="nothing"):
            folder("nothing")
        rows.append(replace(first, seed=1))
        (store.network(rows[-1].identity()) / RECORD).parent.mkdir(parents=True)
        (store.network(rows[-1].identity()) / RECORD).write_text("{}")
        with raises("conflict", choices=(first.identity(), rows[-1].identity())):
            folder(first.architecture.key)
