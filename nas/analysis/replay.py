"""`replay:NAME`: a task that looks recorded trainings up in a table, so that a search trains nothing."""

from collections.abc import Mapping
from dataclasses import asdict, make_dataclass
from typing import Any, ClassVar

from torch import nn

from results.records.row import Row
from results.stats.tabular_benchmark import TabularBenchmark, read_table
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.enumerated import enumerated_space, initial_architecture
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from tasks.base import FitResult, Metric, Task
from tasks.data.batches import Inputs
from tasks.run import STOP, Run


class RecordedFailure(RuntimeError):
    """A recorded training that did not complete."""


class ReplayTask(Task):
    """A table of recorded trainings: NAME of a shipped table, or FILE.jsonl.gz of your own.

    Architectures, costs, curves, failures and seeds are those of the table. A search uses each recorded seed of an
    architecture once; its own seed determines which comes first. An architecture without unused seeds is not proposed
    again. No network is built.

    Attributes:
        table: The recorded Rows.
    """

    table: ClassVar[TabularBenchmark]
    takes_data = False

    def fixed_space(self) -> SearchSpace:
        """Return the space of exactly the recorded architectures."""
        return enumerated_space(self.name, self.table.architectures)

    def seeds(self, architecture: Architecture) -> tuple[int, ...]:
        """Return the recorded seeds. Raises UserError for an architecture that was not recorded."""
        return self.table.seeds(architecture)

    def known_costs(self, architecture: Architecture) -> Mapping[str, Any]:
        """Return the recorded costs. Raises UserError for an architecture that was not recorded."""
        return asdict(self.table.costs(architecture))

    def closed_form(self, architecture: Architecture) -> Count:
        """Return the recorded parameters and MACs, for budgets. Raises UserError for an unrecorded architecture."""
        costs = self.table.costs(architecture)
        return Count(params=costs.params or 0, macs=costs.macs or 0)

    def fingerprint(self, recipe: Any) -> str:
        return self.table.fingerprint

    def fit(self, run: Run) -> FitResult:
        """Replay the recorded reports until one is answered by STOP, then return the recorded result.

        Raises:
            UserError: The architecture or seed was not recorded, or `run.start` is set.
            RecordedFailure: The recorded training failed or never completed.
        """
        if run.start is not None:
            message = f"{self.name} takes no --start: its trainings are recorded."
            raise UserError("unsupported", message, option="--start", task=self.name)
        row = self.table.evaluate(run.architecture, run.seed)
        for point in row.curve:
            at_end = point["step"] >= row.steps
            if at_end and row.status == "complete":
                break
            if not self.table.directions.keys() <= point["metrics"].keys():
                continue  # a report has all metrics
            if run.report(point["step"], point["metrics"]) is STOP:
                return FitResult(steps=point["step"], metrics=point["metrics"])
        if row.status != "complete":
            raise RecordedFailure(row.error or f"the recording ends at step {row.steps} ({row.status})")
        parts = {name: getattr(row, name) for name in ("metrics", "test", "extra_metrics", "speeds")}
        return FitResult(steps=row.steps, **parts)

    def build(self, architecture: Architecture) -> nn.Module:
        """Raise UserError: a table has no networks."""
        raise self._no_network()

    def example(self) -> Inputs:
        """Raise UserError: a table has no networks."""
        raise self._no_network()

    def _no_network(self) -> UserError:
        task = self.table.rows[0].task
        message = f"{self.name} has rows but no networks. Measure networks with task {task!r}."
        return UserError("unsupported", message, task=self.name, needs=task)


def replay_task(table: str) -> type[ReplayTask]:
    """Replay recorded trainings, without training: NAME of a table, or FILE.jsonl.gz of your own rows.

    Raises:
        UserError: As `results.stats.tabular_benchmark.read_table`.
    """
    benchmark = read_table(table)
    first = benchmark.rows[0]
    attributes = {
        "name": f"replay:{benchmark.name}",
        "version": first.task_version,
        "metrics": tuple(Metric(name, "", direction) for name, direction in benchmark.directions.items()),
        "base": initial_architecture(benchmark.architectures),
        "presets": {first.preset: _recipe(benchmark.name, first)},
        "table": benchmark,
    }
    return type("ReplayOfTable", (ReplayTask,), {**attributes, "__doc__": ReplayTask.__doc__})


def _recipe(table: str, row: Row) -> Any:
    """Return the recorded recipe as a preset whose settings can be read but not changed.

    Raises:
        UserError: The name of a setting is not a valid field.
    """

    def check(recipe: Any) -> None:
        for name, value in row.recipe.items():
            if getattr(recipe, name) != value:
                setting = getattr(recipe, name)
                message = f"table {table!r} was recorded with {name}={value!r}, got {setting!r}. Leave it out."
                raise UserError("mismatch", message, option=name, value=setting, expected=value, table=table)

    try:
        kind = make_dataclass(
            "Recorded", [(name, Any) for name in row.recipe], frozen=True, namespace={"__post_init__": check}
        )
    except TypeError as error:
        message = f"the recipe of table {table!r} is invalid: {error}."
        raise UserError("bad-data", message, table=table, cause=type(error).__name__) from error
    return kind(**row.recipe)
