"""The page of benchmarks in the documentation, made from the JSON files in `results`: `python -m benchmarks --report`.

A file is what `python -m benchmarks.NAME --json` prints: NAME.json, or NAME-MACHINE.json for a second machine. If only
the printed table of a run exists, a file has the figures of that table, and its source is "transcribed".
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile
from pathlib import Path
from typing import Any

from benchmarks.form import Figure, describe, format_number, table
from benchmarks.listing import benchmarks

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "project" / "benchmarks.md"

MACHINE = ("cpu", "cores", "gpu", "python", "torch")
SOURCES = ("measured", "transcribed")
FORMS = ("full", "part")
"""A quick run shows only that a benchmark runs, so it is not stored."""

UNITLESS = ("ratio", "share", "slope", "x", "0 or 1")
"""Units that the page leaves out."""

MANY = 8
"""So many figures of a run with one target that all meet it are one row of the page, with their range."""

TITLE = """\
# Benchmarks

Compare this project with what you would use instead: bare PyTorch loops, timm, transformers, Optuna, BoTorch or pandas.
A benchmark measures both sides in the same run. The table has every figure with a target; a value in bold misses it.

```bash
.venv/bin/python -m benchmarks                     # names all benchmarks
.venv/bin/python -m benchmarks.overhead --quick    # runs one in about a minute, with less work
.venv/bin/python -m benchmarks --show overhead     # prints all figures of a stored run
```
"""

HEAD = """\
| benchmark | figure | value | target | peers | machine | date |
|---|---|---|---|---|---|---|
"""

MEASURES = """\
## What they measure

| benchmark | measures | why it misses a target |
|---|---|---|
"""

WHY_MISSED = {
    "compiled_step": "Sums over earlier layers, their gradients and thin products cost more than their memory traffic."
    " A full `dca` of 24 blocks was not compiled within 430 seconds.",
    "coordinator": "SQL statements take most of a trial's time. A row is one statement that Optuna does not have.",
    "counting": "A plug-in has no closed form: 312 of its 2,016 networks are counted, some only to check predictions.",
    "early_stopping": "Of 24 live trainings, eight run to their ends, because the model learns from them.",
    "lm_throughput": "A step has the operators of the handwritten loop. Fetching rows and seeding take the rest.",
    "noisy_search": "In the `rugged` landscape, no architecture's neighbours predict its loss. The cause of the"
    " calibration error at twice the noise is unknown.",
    "overhead": "`nas list presets` imports the modules of tasks, and with them PyTorch.",
    "results_query": "Importing packages takes most of a Parquet query. Checking rows takes most of a store's.",
    "search_efficiency": "Near the end, a second seed is expected to help more than a new architecture.",
    "topology_step": "Each layer stores the state of `rmt`, `hyper` and `mhc`, several times as wide as the network.",
}
"""Benchmark -> why it misses a target; printed only if it misses one."""

LIMITS = """\
## Limits

- Values belong to version 0.1.0 and to the machine in their row. Machines of one name differ in speed.
- An asterisk marks figures that were copied from the printed table of a run. The benchmark itself wrote all others.
- "part" marks a run of some of a benchmark's figures. Quick runs are not in the table.
- Peers are measured in the same run, except "printed", which is a paper's ratio, and "floor", which is computed.
- A full run takes minutes, and some take more than an hour. Nothing else may run on the machine.
- The gain from sharing a GPU among trials is not measured.

To update the rows of a benchmark, run it and write this page:

```bash
.venv/bin/python -m benchmarks.overhead --json > benchmarks/results/overhead.json
.venv/bin/python -m benchmarks --report
```
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A stored run of a benchmark.

    Attributes:
        benchmark: The name of its script.
        source: "measured" if the benchmark wrote the file, "transcribed" if it was copied from a printed table.
        date: The day, YYYY-MM-DD.
        form: "full", or "part" for some figures only.
        machine: As `form.machine` returns it, with None for what is unknown.
        figures: Name -> figure.
        note: What is special about this run.
    """

    benchmark: str
    source: str
    date: str
    form: str
    machine: Mapping[str, Any]
    figures: Mapping[str, Figure]
    note: str = ""

    def has_missed(self) -> bool:
        """Return whether a figure misses its target."""
        return any(figure.is_met is False for figure in self.figures.values())


def read_runs(folder: Path = RESULTS) -> list[Run]:
    """Read all runs of a folder, ordered by file name.

    Raises:
        ValueError: A file is not named after its benchmark, lacks a field or has one that is unknown.
    """
    return [read_run(path) for path in sorted(folder.glob("*.json"), key=lambda path: path.stem)]


def read_run(path: Path) -> Run:
    """Read a run.

    Raises:
        ValueError: The file is not named after its benchmark, lacks a field or has one that is unknown.
    """
    record = json.loads(path.read_text(encoding="utf-8"))
    required = [field.name for field in fields(Run) if field.name != "note"]
    _check_fields(path, "", record, required, optional=("note",))
    _check_fields(path, "machine.", record["machine"], MACHINE)
    for name, figure in record["figures"].items():
        _check_fields(path, f"figures.{name}.", figure, [field.name for field in fields(Figure)])
    run = Run(**{**record, "figures": {name: Figure(**figure) for name, figure in record["figures"].items()}})
    if path.stem != run.benchmark and not path.stem.startswith(f"{run.benchmark}-"):
        raise ValueError(f"{path}: a file of {run.benchmark} must be named {run.benchmark}.json")
    for field, value, choices in (("source", run.source, SOURCES), ("form", run.form, FORMS)):
        if value not in choices:
            raise ValueError(f"{path}: {field} must be one of {', '.join(choices)}, got {value!r}")
    return run


def _check_fields(
    path: Path, place: str, record: Mapping[str, Any], required: Sequence[str], optional: Sequence[str] = ()
) -> None:
    for name in required:
        if name not in record:
            raise ValueError(f"{path}: the field {place}{name} is missing")
    for name in record:
        if name not in (*required, *optional):
            raise ValueError(f"{path}: the field {place}{name} is unknown")


def page(runs: Sequence[Run]) -> str:
    """Return the page: the table of all figures with a target, what benchmarks measure, and limits."""
    missed = {run.benchmark for run in runs if run.has_missed()}
    table_of_figures = HEAD + _lines(line for run in runs for line in rows(run))
    table_of_benchmarks = MEASURES + _lines(
        f"| `{name}` | {measures} | {WHY_MISSED.get(name, '') if name in missed else ''} |"
        for name, measures in benchmarks().items()
    )
    return "\n".join([TITLE, table_of_figures, table_of_benchmarks, LIMITS])


def rows(run: Run) -> Iterator[str]:
    """Yield the rows of a run's figures with a target; many that meet the same one are one row."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for name, figure in run.figures.items():
        if figure.target is not None:
            alike = (figure.aim, figure.unit) if figure.is_met and not figure.peers else (name,)
            groups.setdefault(alike, []).append(name)
    for names in groups.values():
        yield from [range_row(run, names)] if len(names) >= MANY else [row(run, name) for name in names]


def row(run: Run, name: str) -> str:
    """Return a figure's row of the table."""
    figure = run.figures[name]
    value = "not measured" if figure.value is None else with_unit(format_number(figure.value), figure)
    peers = "; ".join(f"{peer} {format_number(other)}" for peer, other in figure.peers.items())
    return _cells(run, name, f"**{value}**" if figure.is_met is False else value, figure.aim, peers)


def range_row(run: Run, names: Sequence[str]) -> str:
    """Return one row for several figures, with the range of their values."""
    figures = [run.figures[name] for name in names]
    values = sorted(figure.value for figure in figures if figure.value is not None)
    pattern = f"{_shared_start(names)}*{_shared_start([name[::-1] for name in names])[::-1]}"
    value = with_unit(f"{format_number(values[0])} to {format_number(values[-1])}", figures[0])
    return _cells(run, pattern, value, figures[0].aim, f"{len(names)} figures")


def with_unit(number: str, figure: Figure) -> str:
    """Return a number with the figure's unit, if that is a unit."""
    return number if figure.unit in UNITLESS else f"{number} {figure.unit}"


def _cells(run: Run, name: str, value: str, aim: str, peers: str) -> str:
    marks = ("*" if run.source == "transcribed" else "") + ("" if run.form == "full" else f" ({run.form})")
    cells = (f"`{run.benchmark}`", f"`{name}`", value, aim, peers, where(run.machine), run.date + marks)
    return f"| {' | '.join(cells)} |"


def where(machine: Mapping[str, Any]) -> str:
    """Return a machine in words: processor and cores, GPU, version of torch."""
    cpu = machine["cpu"] and f"{machine['cpu']}, {machine['cores']} cores"
    torch = machine["torch"] and f"torch {machine['torch']}"
    return ", ".join(part for part in (cpu, machine["gpu"], torch) if part)


def show(runs: Iterable[Run], benchmark: str) -> Iterator[str]:
    """Yield all figures of each stored run of a benchmark as text."""
    for run in runs:
        if run.benchmark == benchmark:
            note = f"\n{run.note}" if run.note else ""
            yield table(f"{benchmark}, {run.date}, {run.form}, {describe(run.machine)}{note}", run.figures)


def _shared_start(names: Sequence[str]) -> str:
    columns = zip(*names, strict=False)
    return "".join(letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, columns))


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
