"""How the best networks of a study are wired, as `nas show` measures it: of those that the store keeps.

Nothing here draws.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from nas.evaluation.job import fresh_task
from nas.evaluation.resolve import settings_of
from nas.evaluation.retrofit import is_installed, origin_of
from nas.evaluation.saved_networks import has_network
from nas.report import tables
from nas.report.axes import topology_of
from nas.report.html import summaries
from nas.report.wiring.influence import Array
from nas.report.wiring.measurement import trained
from nas.report.wiring.stack_wiring import StackWiring, coefficient_records, depth_records, pair_records
from nas.report.wiring.wiring_report import WiringReport
from nas.store.store import Store
from results.records.row import Direction, Row
from results.stats.architecture_summary import ArchitectureSummary
from search_spaces.support.errors import UserError
from search_spaces.support.progress import Progress

Record = Mapping[str, Any]

MOST_SHOWN = 6
"""Networks: each takes seconds to measure and most of a screen, and to compare more of them one would rather ask."""

DIGITS = 4
"""Significant ones of what is shown: a deep network has thousands of pairs, and a page is sent by mail."""


@dataclass(frozen=True)
class NetworkWiring:
    """One stack of a trained network.

    Attributes:
        topology: What its architecture is found by on the page.
        title: What tells it from the others.
        says: What was measured, in a line.
        pairs: A record for each reader and each source that it can read: their numbers (`reader`, `source`) and names,
            weight (None where there is none), gain, share.
        depths: A record for each source and the head: `number`, `layer`, and of read, made, gradient what there is.
        coefficients: The topology's own weights by name, a record each: `row`, `column` and `weight`.
    """

    topology: str
    title: str
    says: str
    pairs: Sequence[Record]
    depths: Sequence[Record]
    coefficients: Mapping[str, Sequence[Record]]


@dataclass(frozen=True)
class Wirings:
    """What there is to show of a study.

    Attributes:
        shown: The stacks of its best networks, in the order of their costs.
        notes: Which architectures are not among them, and why, a line a reason.
        errors: Why networks could not be measured, one of each reason.
    """

    shown: tuple[NetworkWiring, ...]
    notes: tuple[str, ...]
    errors: tuple[UserError, ...] = ()


@dataclass(frozen=True)
class _Kept:
    """A contender, and where a network of it is."""

    one: ArchitectureSummary
    row: Row
    folder: Path


def wirings_of(
    storage: str, rows: Sequence[Row], found: Sequence[ArchitectureSummary], objectives: Mapping[str, Direction]
) -> Wirings:
    """Measure the networks of those that are or may be on the front, as far as they are kept and among the best.

    Those are the MOST_SHOWN that are most surely on the front; where nobody knows how surely, the best by their metric.
    """
    contenders = tables.contenders(found)
    kept = _kept(storage, rows, contenders)
    with_network = [each.one for each in kept]
    best = sorted(kept, key=lambda each: summaries.place(each.one, objectives))[:MOST_SHOWN]
    chosen = [each for each in kept if each in best]
    shown, failures = _measured(chosen)
    notes = [f"{', '.join(names)}: {why}" for why, (_, names) in failures.items()]
    if lost := [one for one in contenders if one not in with_network]:
        notes.append(f"{_names(lost)}: {_why_not_kept(storage)}")
    if beyond := [each.one for each in kept if each not in best]:
        notes.append(f"{_names(beyond)}: left out, the {MOST_SHOWN} that are most surely on the front are shown")
    return Wirings(tuple(shown), tuple(notes), tuple(error for error, _ in failures.values()))


def _kept(storage: str, rows: Sequence[Row], contenders: Sequence[ArchitectureSummary]) -> list[_Kept]:
    """A network of each contender that has one: that of its first Row whose network is kept."""
    if not _is_stored(storage):
        return []
    by_identity, kept = {row.identity(): row for row in rows}, []
    with closing(Store(storage)) as store:
        for one in contenders:
            own = [(by_identity[name], store.network(name)) for name in one.identities if name in by_identity]
            kept += [_Kept(one, row, folder) for row, folder in own if has_network(folder)][:1]
    return kept


def _is_stored(storage: str) -> bool:
    return "://" in storage


def _why_not_kept(storage: str) -> str:
    if not _is_stored(storage):
        return "rows of files have no networks; a study of a store may"
    return "no network is kept; `nas search --save-models all` keeps every one, and `nas evaluate` its own"


def _measured(chosen: Sequence[_Kept]) -> tuple[list[NetworkWiring], dict[str, tuple[UserError, list[str]]]]:
    """The wirings of networks; and each reason why some cannot be measured, with its error and their names."""
    shown, failures = list[NetworkWiring](), dict[str, tuple[UserError, list[str]]]()
    load = cache(fresh_task)  # they are of one task: its data is read once
    with Progress("networks measured", len(chosen)) as progress:
        for each in chosen:
            try:
                shown += _wirings(each, _look_at(each, load))
            except UserError as error:
                failures.setdefault(str(error), (error, []))[1].append(_name(each.one))
            progress.advance()
    return shown, failures


def _look_at(kept: _Kept, load: Any) -> WiringReport:
    """What `nas.show` gives of a checkpoint. Raises UserError where it cannot be shown, or would run a file of code."""
    if not is_installed(kept.row.task):
        any_of = f"{kept.folder.parent}/..."  # one reason for all of them
        message = f"a report runs no file of code; `nas show FILE.py:CLASS --checkpoint {any_of}` shows each"
        raise UserError("unsupported", message, task=kept.row.task, path=any_of)
    origin = origin_of(kept.folder, load=load)
    settings = settings_of(origin.task, origin.preset, origin.settings)
    return trained(origin.task, origin.folder, origin.preset, settings, "", 0)


def _wirings(kept: _Kept, shown: WiringReport) -> Iterator[NetworkWiring]:
    for stack in shown.stacks:
        of = f", {stack.name}" if stack.name else ""
        whole = "" if stack.influence.fixed else "; weights that depend on the input are differentiated too"
        yield NetworkWiring(
            topology=topology_of(kept.one),
            title=f"{_name(kept.one)}, seed {kept.row.seed}{of}",
            says=f"{shown.title}{whole}",
            pairs=_pairs(stack),
            depths=_depths(stack),
            coefficients={name: _coefficients(found) for name, found in stack.coefficients.items()},
        )


def _pairs(stack: StackWiring) -> list[Record]:
    records = pair_records(stack)
    readers = accumulate(record["source"] == 0 for record in records)  # each begins with the network's input
    return [
        {
            "reader": number - 1,
            "source": record["source"],
            "reads": record["reader"],
            "of": record["of"],
            **{name: _short(record[name]) for name in ("weight", "gain", "share")},
        }
        for number, record in zip(readers, records, strict=True)
    ]


def _depths(stack: StackWiring) -> list[Record]:
    return [
        {name: _short(value) if isinstance(value, float) else value for name, value in record.items()}
        for record in depth_records(stack)
    ]


def _coefficients(found: Array) -> list[Record]:
    return [
        {"row": record["row"], "column": column, "weight": _short(weight)}
        for record in coefficient_records(found)
        for column, weight in record.items()
        if column != "row" and weight is not None
    ]


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _names(some: Sequence[ArchitectureSummary]) -> str:
    return ", ".join(map(_name, some))


def _name(one: ArchitectureSummary) -> str:
    return f"{topology_of(one)} {str(one.record.get('key') or '')[:6]}".rstrip()
