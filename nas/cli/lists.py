"""`nas list`: what is installed, one line each."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from nas.cli.options import ListKind
from nas.environment.paths import DEFAULT_STORE
from nas.report import tables
from nas.samplers.registry import SAMPLERS
from search_spaces.spaces.catalog import SPACES
from search_spaces.support.errors import UserError
from search_spaces.support.progress import LOADING, status_if_slow
from search_spaces.support.spec import Spec, format_scalar
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology
from tasks.recipes.settings import plain_values
from tasks.registry import TASK_FAMILIES, TASKS

Lines = Iterator[tuple[str, str]]


def read_lists(
    kind: ListKind | None = None, of: str | None = None, storage: str = DEFAULT_STORE
) -> dict[ListKind, list[tuple[str, str]]]:
    """Return the names of one kind, or of everything installed, each with one line about it.

    `of` is a task whose presets, or a topology whose options are listed in full.

    Raises:
        UserError: An unknown task or topology, `of` with another kind, or a store that cannot be used.
    """
    if of is not None and kind not in (ListKind.PRESETS, ListKind.TOPOLOGIES):
        remedy = f"`nas list presets {of}` or `nas list topologies {of}`"
        message = f"NAME applies to presets and topologies only, got {of!r}. Use {remedy}."
        raise UserError("conflict", message, option="NAME", value=of, choices=("presets", "topologies"))
    readers: dict[ListKind, Callable[[], Lines]] = {
        ListKind.TASKS: _tasks,
        ListKind.PRESETS: lambda: _preset_values(of) if of else _presets(),
        ListKind.SPACES: lambda: chain(_descriptions(SPACES), [("timm:MODEL", "Depth and heads of a timm model.")]),
        ListKind.TOPOLOGIES: lambda: _options(of) if of else _descriptions(TOPOLOGIES),
        ListKind.SAMPLERS: lambda: _descriptions(SAMPLERS),
        ListKind.STUDIES: lambda: _studies(storage),
        ListKind.TABLES: _tables,
    }
    overview = (ListKind.TASKS, ListKind.SPACES, ListKind.TOPOLOGIES, ListKind.SAMPLERS)
    kinds = [kind] if kind else [k for k in readers if k in overview]
    with status_if_slow(LOADING):
        return {list_kind: list(readers[list_kind]()) for list_kind in kinds}


def print_lists(lists: dict[ListKind, list[tuple[str, str]]]) -> None:
    """Print a table for each kind."""
    for kind, lines in lists.items():
        tables.print_pairs(tables.make_console(), lines, kind.value)


def _descriptions(registry: Any) -> Lines:
    """Yield each entry's description; one that cannot be imported is listed with the reason."""
    for name in registry.names():
        try:
            yield name, registry.description(name)
        except UserError as error:
            yield name, f"broken: {error}"


def _tasks() -> Lines:
    yield from _descriptions(TASKS)
    for name, line in _descriptions(TASK_FAMILIES):
        yield f"{name}:NAME", line


def _presets() -> Lines:
    """Yield all presets; a task that cannot be imported is listed with the reason."""
    from tasks.load import task_class

    for name in TASKS.names():
        try:
            for preset, recipe in task_class(name).presets.items():
                yield f"{name} {preset}", str(recipe)
        except UserError as error:
            yield name, f"broken: {error}"


def _preset_values(task: str) -> Lines:
    """Yield every value of every preset of a task: what `--set` can change."""
    from tasks.load import task_class

    for preset, recipe in task_class(task).presets.items():
        for name, value in plain_values(recipe).items():
            yield f"{preset} {name}", str(value)


def _options(topology: str) -> Lines:
    """Yield a topology's description, then each option: its value, its meaning and the values that are searched."""
    from search_spaces.topologies.option_docs import option_descriptions

    kind, options = resolve_topology(topology)
    yield topology, TOPOLOGIES.description(Spec.parse(topology).name)
    for option, meaning in option_descriptions(kind).items():
        suffix = f" Searched: {', '.join(map(format_scalar, kind.axes[option]))}." if option in kind.axes else ""
        yield f"{option}={format_scalar(getattr(options, option))}", f"{meaning}{suffix}"


def _tables() -> Lines:
    """Yield each shipped table: its rows, task and preset, and the question that it answers."""
    from results.records.sources import table_summaries

    for name, summary in table_summaries().items():
        yield name, f"{summary.rows} rows; {summary.task}, {summary.preset}. {summary.question}"


def _studies(url: str) -> Lines:
    from nas.store.store import Store

    store = Store(url)
    searches = store.searches()
    for name in dict.fromkeys((*searches, *store.studies())):
        rows = f"{len(store.read([name]).rows)} rows"
        if name not in searches:
            yield name, f"{rows}; evaluations"
            continue
        config = searches[name]
        if config is None:
            yield name, f"{rows}; a search by another version"
            continue
        description = f"{config.task}, {config.space}, {config.preset}, {', '.join(config.objectives)}"
        yield name, f"{rows}; {description}; {config.budget or 'no budget'}"
