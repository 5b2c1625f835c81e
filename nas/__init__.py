"""Neural architecture search over depth, heads, head dimension and residual topology, under hard budgets.

    import nas

    study = nas.search("digits-vit", budget="params<=100k", trials=24)
    study.front(), study.to_pandas(), study.plot("front.png")

Each function corresponds to the command of the same name: `nas search --help` describes its parameters. torch is loaded
when it is first needed.
"""

import sys
from typing import TYPE_CHECKING, Any

from search_spaces.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    __version__: str
    from nas.api.audit import audit
    from nas.api.check_mup import check_mup
    from nas.api.compare import compare
    from nas.api.cost import cost
    from nas.api.downstream import downstream
    from nas.api.encode import encode
    from nas.api.evaluate import evaluate
    from nas.api.export import export
    from nas.api.import_rows import import_rows
    from nas.api.load import load
    from nas.api.load_network import load_network
    from nas.api.load_table import load_table
    from nas.api.new_task import new_task
    from nas.api.new_topology import new_topology
    from nas.api.predict import predict
    from nas.api.profile import profile
    from nas.api.retrofit import retrofit
    from nas.api.search import search
    from nas.api.show import show
    from nas.api.tournament import tournament
    from nas.report.study import Study
    from nas.samplers.proposer import Proposer, SearchState
    from nas.samplers.rungs import Rungs
    from nas.workers.resources import Resources
    from results.records.row import Row
    from search_spaces.support.errors import Notice, UserError

__all__ = [
    "Notice",
    "Proposer",
    "Resources",
    "Row",
    "Rungs",
    "SearchState",
    "Study",
    "UserError",
    "audit",
    "check_mup",
    "compare",
    "cost",
    "downstream",
    "encode",
    "evaluate",
    "export",
    "import_rows",
    "load",
    "load_network",
    "load_table",
    "new_task",
    "new_topology",
    "predict",
    "profile",
    "retrofit",
    "search",
    "show",
    "tournament",
]

_HOMES = {
    **{name: f"nas.api.{name}" for name in __all__ if name[0].islower()},
    "Notice": "search_spaces.support.errors",
    "Proposer": "nas.samplers.proposer",
    "Resources": "nas.workers.resources",
    "Row": "results.records.row",
    "Rungs": "nas.samplers.rungs",
    "SearchState": "nas.samplers.proposer",
    "Study": "nas.report.study",
    "UserError": "search_spaces.support.errors",
}


_lazily, _ = lazy_exports(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if _HOMES.get(name, __name__) in sys.modules:
        return _lazily(name)
    from nas.environment.loading import loading  # imports rich, which `import nas` avoids

    with loading(name):
        return _lazily(name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # a tenth of the start of a short command

    try:
        return version("nas-bench-wiring")
    except PackageNotFoundError:  # a checkout that is not installed
        return "0+unknown"


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
