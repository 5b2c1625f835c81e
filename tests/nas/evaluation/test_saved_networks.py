"""Which saved network a key means."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from expect import raises
from nas.evaluation.saved_networks import network_folder
from nas.store.store import Store
from search_spaces.architecture.checkpoint import RECORD
from toy_rows import LITTLE, a_row


def test_key_means_the_one_row_whose_network_is_saved(tmp_path: Path) -> None:
    own, other, failed = (
        a_row(),
        a_row(architecture=replace(LITTLE, depth=7)),
        a_row(seed=9, status="failed", error="no"),
    )
    rows = [own, other, failed]
    with closing(Store(f"sqlite:///{tmp_path}/studies.db", make=True)) as store:

        def folder(key: str) -> Path:
            return network_folder(store, "s", rows, key)

        with raises("missing-file", option="KEY", value=other.architecture.key):
            folder(other.architecture.key)
        for row in (own, other):
            (store.network(row.identity()) / RECORD).parent.mkdir(parents=True)
            (store.network(row.identity()) / RECORD).write_text("{}")
        assert folder(other.architecture.key[:8]) == folder(other.identity()) == store.network(other.identity())
        assert folder(own.architecture.key) == store.network(own.identity())
        with raises("missing-value", option="KEY"):
            folder("")
        with raises("unknown-name", value="nothing"):
            folder("nothing")
        rows.append(replace(own, seed=1))
        (store.network(rows[-1].identity()) / RECORD).parent.mkdir(parents=True)
        (store.network(rows[-1].identity()) / RECORD).write_text("{}")
        with raises("conflict", choices=(own.identity(), rows[-1].identity())):
            folder(own.architecture.key)
