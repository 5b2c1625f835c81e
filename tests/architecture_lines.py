"""Lines of tables for tests of summaries: one architecture a depth, odd ones with a topology of their own."""

from typing import Any

from results.records import table
from results.stats.architecture_summary import ArchitectureSummary, summarize

WAYS = {"accuracy": "max", "flops": "min"}


def line(depth: int, accuracy: float, *, seed: int = 0, error: float | None = 0.01, **more: Any) -> dict[str, Any]:
    return {
        "task": "any",
        "key": f"k{depth}",
        "depth": depth,
        "topology": "dca(k=2)" if depth % 2 else "resnet",
        "flops": 1000 * depth,
        "seed": seed,
        "status": "complete",
        "identity": f"{depth}-{seed}",
        "accuracy": accuracy,
        "accuracy_se": error,
        "test_accuracy": accuracy - 0.01,
        "test_accuracy_se": error,
        **more,
    }


def summaries_of(lines: list[dict[str, Any]], **more: Any) -> dict[str, ArchitectureSummary]:
    summaries = summarize(table.from_records(lines), more.pop("objectives", WAYS), **more)
    return {summary.record["key"]: summary for summary in summaries}
