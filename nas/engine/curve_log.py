"""Training curves for TensorBoard: one folder for each training, written once its Row is stored.

The coordinator writes them from Rows, without the workers. They are copies, and may be deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from nas.environment.paths import safe_name, slug
from nas.request.job import is_first_process
from nas.request.text_checks import LogFormat
from results.records.row import Row
from results.records.strict_json import is_number
from search_spaces.support.errors import printable
from search_spaces.support.files import atomic_open
from search_spaces.support.logger import LOGGER

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event

_NAME = "events.out.tfevents"
"""Prefix of TensorBoard's file names."""


def curve_logs(log: LogFormat | None, store_folder: Path, study: str) -> Sequence[Callable[[Row], None]]:
    """Return the listeners that write a study's curves: one if `log` is given, else none."""
    return [CurveLog(store_folder, study).add] if log is not None and is_first_process() else []


@final
class CurveLog:
    """The folder of a study's curves, with a subfolder for each training that has any.

    The curve of a resumed training is rewritten as a whole. A failure to write is reported once, and loses no Row.

    Args:
        store_folder: The store's folder, see `nas.store.store.Store.folder`.
        study: The study's name.
    """

    def __init__(self, store_folder: Path, study: str) -> None:
        root = store_folder / "tensorboard"
        self._folder = root / slug(study)
        self._failure = False
        LOGGER.info(f"curves are written to {self._folder}; show them: tensorboard --logdir {root}")

    def add(self, row: Row) -> None:
        """Write a Row's curve. A Row without one is skipped."""
        points = _curve(row)
        if not points or self._failure:
            return
        folder = self._folder / run_name(row)
        file = folder / f"{_NAME}.{points[-1].step:012d}"  # TensorBoard reads files in name order
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write(_events(row, points), file)
            for old in folder.glob(f"{_NAME}.*"):
                if old != file:
                    old.unlink()
        except OSError as error:
            self._failure = True
            LOGGER.warning(f"curves cannot be written to {folder}: {error.strerror or error}. Curve logging is off.")


@dataclass(frozen=True)
class CurveLogPoint:
    """A point of a training curve: step, time in seconds since 1970, metrics."""

    step: int
    time: float
    metrics: Mapping[str, float]


def run_name(row: Row) -> str:
    """Return the folder name of a training: topology, depth, key, seed and identity."""
    shape = f"{safe_name(row.architecture.topology)[:80]}-{row.architecture.depth}-{row.architecture.key}"
    return f"{shape}-seed{row.seed}-{row.identity()[:8]}"


def _curve(row: Row) -> list[CurveLogPoint]:
    """Return the points of a Row's curve, without standard errors; the last one includes the test metrics."""
    start, points = _start_time(row), []
    for point in row.points():
        if not is_number(point["step"]):  # of a Row from another program
            continue
        values = {name: point[name] for name in row.directions if is_number(point.get(name))}
        points.append(CurveLogPoint(int(point["step"]), start + float(point.get("seconds") or 0.0), values))
    if points and row.status == "complete":
        last, wall = points[-1], row.provenance.get("wall_s")
        took = float(wall) if isinstance(wall, int | float) else 0.0
        test = {f"test_{name}": row.test[name] for name in row.directions if is_number(row.test.get(name))}
        points[-1] = CurveLogPoint(last.step, max(last.time, start + took), {**last.metrics, **test})
    return points


def _start_time(row: Row) -> float:
    try:
        return datetime.fromisoformat(str(row.provenance.get("started"))).timestamp()
    except ValueError:
        return 0.0


def _settings(row: Row) -> dict[str, Any]:
    """Return what TensorBoard shows as hyperparameters: recipe, architecture, costs and seed."""
    shape = {field.name: getattr(row.architecture, field.name) for field in fields(row.architecture)}
    costs = {name: getattr(row.costs, name) for name in ("params", "flops")}
    values = {**row.recipe, **shape, **costs, "seed": row.seed}
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}


def _events(row: Row, points: Iterable[CurveLogPoint]) -> Iterator["Event"]:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb

    start = _start_time(row)
    yield Event(wall_time=start, file_version="brain.Event:2")
    settings = {name: printable(value) if isinstance(value, str) else value for name, value in _settings(row).items()}
    yield Event(wall_time=start, summary=hparams_pb(settings, row.identity(), start))
    for point in points:
        values = [Summary.Value(tag=name, simple_value=value) for name, value in point.metrics.items()]
        yield Event(wall_time=point.time, step=point.step, summary=Summary(value=values))


def _write(events: Iterable["Event"], path: Path) -> None:
    from tensorboard.summary.writer.record_writer import RecordWriter

    with atomic_open(path) as file:
        records = RecordWriter(file)
        for event in events:
            records.write(event.SerializeToString())
