"""The measured topologies of a study's best saved networks, as `nas show` measures them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from nas.evaluation.retrofit import is_installed, origin_of
from nas.evaluation.saved_networks import has_network
from nas.report import tables
from nas.report.axes import topology_of
from nas.report.html import chart_records
from nas.report.wiring.influence import Array
from nas.report.wiring.measurement import wiring_of_checkpoint
from nas.report.wiring.stack_wiring import StackWiring, coefficient_records, depth_records, pair_records
from nas.report.wiring.wiring_report import WiringReport
from nas.request.job import reload_task
from nas.request.resolve import parse_overrides
from nas.store.store import Store
from results.records.row import Direction, Row
from results.stats.architecture_summary import ArchitectureSummary
from search_spaces.support.errors import UserError
from search_spaces.support.progress import Progress

Record = Mapping[str, Any]

MAX_NETWORKS = 6
"""Most networks that are measured: each takes seconds, and most of a screen."""

SIGNIFICANT_DIGITS = 4
"""Significant digits of each number, so that the page of a deep network stays small."""


@dataclass(frozen=True)
class NetworkWiring:
    """One stack of a trained network.

    Attributes:
        topology: Name of its topology, by which the page hides it.
        title: Its heading, unique in the report.
        description: One line about what was measured.
        pairs: One record for each reader and each source that it can read: their numbers (`reader`, `source`) and names
            (`reads`, `of`), weight (None if there is none), gain, share.
        depths: One record for each source and the head: `number`, `layer`, and those of read, made, gradient that
            exist.
        coefficients: The topology's own weights by name, one record each: `row`, `column` and `weight`.
    """

    topology: str
    title: str
    description: str
    pairs: Sequence[Record]
    depths: Sequence[Record]
    coefficients: Mapping[str, Sequence[Record]]


@dataclass(frozen=True)
class Wirings:
    """The measured networks of a study's report.

    Attributes:
        networks: The stacks of its best networks, in the order of their costs.
        notes: Which architectures are missing and why, one line for each reason.
        errors: One error for each reason that networks could not be measured.
    """

    networks: tuple[NetworkWiring, ...]
    notes: tuple[str, ...]
    errors: tuple[UserError, ...] = ()


@dataclass(frozen=True)
class _SavedNetwork:
    """A contender with one of its saved networks."""

    architecture: ArchitectureSummary
    row: Row
    folder: Path


def wirings_of(
    storage: str, rows: Sequence[Row], architectures: Sequence[ArchitectureSummary], objectives: Mapping[str, Direction]
) -> Wirings:
    """Measure the saved networks of the front's contenders.

    Those are the MAX_NETWORKS with the highest probability of being on the front; without one, the best by metric.
    """
    contenders = tables.contenders(architectures)
    networks = _saved_networks(storage, rows, contenders)
    with_network = [network.architecture for network in networks]
    best = sorted(networks, key=lambda network: chart_records.rank_key(network.architecture, objectives))[:MAX_NETWORKS]
    candidates = [network for network in networks if network in best]
    wirings, failures = _measure(candidates)
    notes = [f"{', '.join(names)}: {reason}" for reason, (_, names) in failures.items()]
    if missing := [architecture for architecture in contenders if architecture not in with_network]:
        notes.append(f"{_names(missing)}: {_reason_without_network(storage)}")
    if rest := [network.architecture for network in networks if network not in best]:
        notes.append(f"{_names(rest)}: not shown; only the {MAX_NETWORKS} most likely on the front are")
    return Wirings(tuple(wirings), tuple(notes), tuple(error for error, _ in failures.values()))


def _saved_networks(
    storage: str, rows: Sequence[Row], contenders: Sequence[ArchitectureSummary]
) -> list[_SavedNetwork]:
    """Return the saved network of each contender's first Row that has one."""
    if not _is_stored(storage):
        return []
    by_identity, networks = {row.identity(): row for row in rows}, []
    with closing(Store(storage)) as store:
        for architecture in contenders:
            pairs = [
                (by_identity[name], store.network(name)) for name in architecture.identities if name in by_identity
            ]
            networks += [_SavedNetwork(architecture, row, folder) for row, folder in pairs if has_network(folder)][:1]
    return networks


def _is_stored(storage: str) -> bool:
    return "://" in storage


def _reason_without_network(storage: str) -> str:
    if not _is_stored(storage):
        return "rows in files have no networks; a study in a store may"
    return "no saved network; `nas search --save-models all` saves every network, `nas evaluate` its own"


def _measure(networks: Sequence[_SavedNetwork]) -> tuple[list[NetworkWiring], dict[str, tuple[UserError, list[str]]]]:
    """Measure networks; return the results and the failures: reason -> the first error and the networks' names."""
    wirings, failures = list[NetworkWiring](), dict[str, tuple[UserError, list[str]]]()
    load = cache(reload_task)  # all are of one task: read its data once
    with Progress("networks measured", len(networks)) as progress:
        for network in networks:
            try:
                wirings += _wirings(network, _wiring_report(network, load))
            except UserError as error:
                failures.setdefault(str(error), (error, []))[1].append(_name(network.architecture))
            progress.advance()
    return wirings, failures


def _wiring_report(network: _SavedNetwork, load: Any) -> WiringReport:
    """Measure a saved network as `nas.show` does; raise UserError if its task is a file, whose code would be run."""
    if not is_installed(network.row.task):
        any_of = f"{network.folder.parent}/..."  # one reason for all of them
        message = f"a report runs no task files; use `nas show FILE.py:CLASS --checkpoint {any_of}` for each"
        raise UserError("unsupported", message, task=network.row.task, path=any_of)
    origin = origin_of(network.folder, load=load)
    settings = parse_overrides(origin.task, origin.preset, origin.settings)
    return wiring_of_checkpoint(origin.task, origin.folder, origin.preset, settings, "", 0)


def _wirings(network: _SavedNetwork, report: WiringReport) -> Iterator[NetworkWiring]:
    for stack in report.stacks:
        suffix = f", {stack.name}" if stack.name else ""
        note = "" if stack.influence.fixed else "; full derivatives, including input-dependent weights"
        yield NetworkWiring(
            topology=topology_of(network.architecture),
            title=f"{_name(network.architecture)}, seed {network.row.seed}{suffix}",
            description=f"{report.title}{note}",
            pairs=_pairs(stack),
            depths=_depths(stack),
            coefficients={name: _coefficients(weights) for name, weights in stack.coefficients.items()},
        )


def _pairs(stack: StackWiring) -> list[Record]:
    records = pair_records(stack)
    readers = accumulate(record["source"] == 0 for record in records)  # each reader starts with the network's input
    return [
        {
            "reader": number - 1,
            "source": record["source"],
            "reads": record["reader"],
            "of": record["of"],
            **{name: _round_significant(record[name]) for name in ("weight", "gain", "share")},
        }
        for number, record in zip(readers, records, strict=True)
    ]


def _depths(stack: StackWiring) -> list[Record]:
    return [
        {name: _round_significant(value) if isinstance(value, float) else value for name, value in record.items()}
        for record in depth_records(stack)
    ]


def _coefficients(weights: Array) -> list[Record]:
    return [
        {"row": record["row"], "column": column, "weight": _round_significant(weight)}
        for record in coefficient_records(weights)
        for column, weight in record.items()
        if column != "row" and weight is not None
    ]


def _round_significant(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def _names(architectures: Sequence[ArchitectureSummary]) -> str:
    return ", ".join(map(_name, architectures))


def _name(architecture: ArchitectureSummary) -> str:
    return f"{topology_of(architecture)} {str(architecture.record.get('key') or '')[:6]}".rstrip()
