"""`nas list`: what is installed, with a line each."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from rich.markup import escape
from rich.table import Table

from nas import report, store
from nas.options import Kind
from nas.sampling import SAMPLERS
from search_spaces.catalog import SPACES
from search_spaces.errors import UserError
from search_spaces.registry import Registry
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.base import TASK_FAMILIES, TASKS
from tasks.load import task_class

Lines = Iterator[tuple[str, str]]


def run(kind: Kind | None, storage: str) -> None:
    """Print one kind, or all that are installed; presets and studies only when asked for."""
    console = report.screen()
    listed: dict[Kind, Callable[[], Lines]] = {
        Kind.TASKS: _tasks,
        Kind.PRESETS: _presets,
        Kind.SPACES: lambda: _registered(SPACES),
        Kind.TOPOLOGIES: lambda: _registered(TOPOLOGIES),
        Kind.SAMPLERS: lambda: iter(SAMPLERS.items()),
        Kind.STUDIES: lambda: _studies(storage),
    }
    for one in [kind] if kind else [k for k in listed if k not in (Kind.PRESETS, Kind.STUDIES)]:
        table = Table(title=one.value, title_justify="left", box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, line in listed[one]():
            table.add_row(escape(name), escape(line))
        console.print(table)


def _registered(registry: Registry) -> Lines:
    """A broken plug-in is named with its reason and takes nothing else down."""
    for name in registry.names():
        try:
            yield name, _first_line(registry.load(name))
        except UserError as error:
            yield name, f"broken: {error}"


def _first_line(entry: Any) -> str:
    return (inspect.getdoc(entry) or "").partition("\n")[0]


def _tasks() -> Lines:
    """Each task with the names of its presets."""
    for name in TASKS.names():
        try:
            kind = task_class(name)
            yield name, f"{_first_line(kind)} (presets {', '.join(kind.presets)})"
        except UserError as error:
            yield name, f"broken: {error}"
    for name, line in _registered(TASK_FAMILIES):
        yield f"{name}:NAME", line


def _presets() -> Lines:
    for name in TASKS.names():
        try:
            presets = task_class(name).presets
        except UserError:
            continue  # said where tasks are listed
        for preset, settings in presets.items():
            yield f"{name} {preset}", str(settings)


def _studies(url: str) -> Lines:
    storage = store.open_storage(url)
    with store.clear_errors(url):
        for name in store.study_names(storage):
            study = store.load_study(storage, name)
            settings = store.settings_of(study)
            searched = f"{settings.task}, {settings.space}, {settings.preset}, {', '.join(settings.objectives)}"
            yield name, f"{len(store.rows_of(study))} rows; {searched}; {settings.budget or 'no budget'}"
