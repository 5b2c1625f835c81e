"""The saved network that a key names."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from expect import raises
from nas.evaluation.saved_networks import rows_with_network
from nas.store.store import Store
from search_spaces.architecture.checkpoint import RECORD
from toy_rows import LITTLE, a_row


def test_key_names_the_best_row_with_a_saved_network(tmp_path: Path) -> None:
    first, other = a_row(), a_row(architecture=replace(LITTLE, depth=7))
    failure = a_row(seed=9, status="failed", error="no")
    rows = [first, other, failure]
    with closing(Store(f"sqlite:///{tmp_path}/studies.db", make=True)) as store:

        def folder(key: str) -> Path:
            return store.network(rows_with_network(store, "s", rows, key)[0].identity())

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
        metric = next(iter(first.directions))
        sign = 1 if first.directions[metric] == "max" else -1
        for seed, change in ((1, 0.1), (2, -0.1), (3, 0.2)):  # the last is not saved
            rows.append(
                replace(first, seed=seed, metrics={**first.metrics, metric: first.metrics[metric] + sign * change})
            )
            if seed != 3:
                (store.network(rows[-1].identity()) / RECORD).parent.mkdir(parents=True)
                (store.network(rows[-1].identity()) / RECORD).write_text("{}")
        assert folder(first.architecture.key) == store.network(rows[-3].identity())
        assert folder(first.identity()) == store.network(first.identity())
        rows.append(replace(first, task="another"))
        (store.network(rows[-1].identity()) / RECORD).parent.mkdir(parents=True)
        (store.network(rows[-1].identity()) / RECORD).write_text("{}")
        with raises("conflict", option="KEY"):
            folder(first.architecture.key)
