"""Toy tasks by path, arguments of a search, and the outcomes of searches."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nas
from nas.report.study import Study
from nas.workers.resources import Resources
from results.records.row import Row

TOYS = Path(__file__).parent / "toy_tasks.py"
TOY = f"{TOYS}:Toy"
STORE = "sqlite:///nas-runs/studies.db"
"""The default store of commands."""

Search = Callable[..., Study]
Interrupt = Callable[[Callable[[], Study], int], None]


def a_search(folder: Path) -> dict[str, Any]:
    """Arguments of a small search with its store in this folder."""
    return {
        "task": f"{TOYS}:Toy",
        "budget": "params<=3k",
        "objectives": "accuracy,flops",
        "trials": 8,
        "reeval_fraction": 0,
        "preset": "smoke",
        "sampler": "random",
        "resources": Resources(1),
        "study": "s",
        "storage": f"sqlite:///{folder}/store/studies.db",
    }


def outcomes(study: Study) -> list[tuple[object, ...]]:
    return [(row.architecture, row.status, dict(row.metrics), dict(row.test), row.costs) for row in study.rows()]


def rows(arguments: dict[str, Any], **changes: Any) -> list[Row]:
    arguments = {**arguments, **changes}
    return nas.load(arguments["study"], storage=arguments["storage"]).rows()
