"""A study to report: topologies of equal cost, several seeds, a failure, and names that try to be markup."""

import json
from collections.abc import Iterator
from itertools import product

import pytest

import nas
from nas.report.study import Study
from results.records.costs import Costs
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture
from toy_rows import a_row

EVIL = "<script>document.body.dataset.evil = 1</script>"


@pytest.fixture(scope="session", autouse=True)
def small_vega(request: pytest.FixtureRequest) -> Iterator[None]:
    """Replace Vega's code, which takes seconds to bundle, by a short text, except in browsers' tests."""
    if any(item.get_closest_marker("browser") for item in request.session.items):
        yield
        return
    vl_convert = pytest.importorskip("vl_convert")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "javascript_bundle", lambda code: f"{code} // </script>")
        yield


@pytest.fixture(scope="session")
def evil() -> str:
    """Text that would run if it were markup."""
    return EVIL


@pytest.fixture(scope="session")
def study() -> Study:
    shapes = product((1, 2, 4), (("resnet", 0.0), ("dca(k=2)", 0.02), ("grn-v1", -0.02)), (0, 1))
    rows = [result_row(depth, topology, better, seed) for depth, (topology, better), seed in shapes]
    failure = a_row(status="failed", error=f"{EVIL} went wrong", metrics={}, seed=7)
    # Rows are read whatever they contain; no architecture can be built with such a name.
    texts = (row.to_json().replace('"grn-v1"', json.dumps(EVIL)) for row in [*rows, failure])
    return Study(f"small {EVIL}", "sqlite:////nowhere/studies.db", [*map(Row.from_json, texts)])


@pytest.fixture(scope="session")
def network_study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Three saved networks after short trainings: one topology has own weights, one reads in head space."""
    folder = tmp_path_factory.mktemp("wired")
    storage = f"sqlite:///{folder}/studies.db"
    arguments = {
        "arch": "depth=2,width=16,heads=2,head_dim=8,hidden=16",
        "preset": "smoke",
        "settings": "lr=0.02,epochs=1",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for topology in ("ancre", "dca(k=2)", "rmt(keys=4)"):
            nas.evaluate("digits-vit", topology=topology, study="wired", storage=storage, **arguments)
    return nas.load("wired", storage=storage)


def result_row(depth: int, topology: str, better: float, seed: int) -> Row:
    accuracy = 0.5 + 0.1 * depth + better + 0.001 * seed
    return a_row(
        architecture=Architecture(depth=depth, width=8, heads=2, head_dim=4, hidden=16, topology=topology),
        costs=Costs(
            params=100 * depth,
            topology_params=depth,
            embedding_params=10,
            non_embedding_params=100 * depth - 10,
            macs=1000 * depth,
            flops=2000 * depth,
            elementwise_flops=20,
        ),
        seed=seed,
        steps=10,
        curve=[{"step": 5, "metrics": {"accuracy": accuracy / 2}}],
        metrics={"accuracy": accuracy, "accuracy_se": 0.01},
        provenance={"command": "nas search any --seed 0", "commit": "abc", "versions": {"torch": "2"}},
    )
