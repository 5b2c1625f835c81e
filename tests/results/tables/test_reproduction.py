"""Sample rows of the shipped tables are reproduced: exactly on the same processor, within errors on another."""

import platform
from math import hypot

import pytest

import nas
from results.records.row import Row

TABLES = ("digit-ranks-vit", "digits-vit-topologies", "stdlib-mlm-topologies")


def cheapest(table: str) -> list[Row]:
    """The cheapest network of a table, with each of its seeds."""
    rows = nas.load(source=table).rows()
    least = min(row.costs.flops or 0 for row in rows)
    return [row for row in rows if row.costs.flops == least]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_cheapest_network_of_a_table_is_reproduced(table: str, tmp_path: object) -> None:
    for row in cheapest(table)[:2]:
        shape = ",".join(f"{name}={value}" for name, value in row.architecture.record().items() if value)
        anew = nas.evaluate(
            row.task, arch=shape, preset=row.preset, settings={"reports": row.recipe["reports"]}, seed=row.seed,
            storage=f"sqlite:///{tmp_path}/{row.seed}.db",
        )  # fmt: skip
        assert anew.identity() == row.identity()
        if anew.provenance["device"] == row.provenance["device"] and platform.system() == "Linux":
            assert (anew.metrics, anew.test) == (row.metrics, row.test)
        for name in row.directions:
            error = hypot(row.metrics[f"{name}_se"], anew.metrics[f"{name}_se"])
            assert abs(anew.metrics[name] - row.metrics[name]) < 3 * error
