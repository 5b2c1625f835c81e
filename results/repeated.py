"""Rows of which several are of one training: each once, and whether they agree."""

from collections.abc import Callable, Hashable, Iterable

from results.row import Row


def each_once(rows: Iterable[Row], key: Callable[[Row], Hashable] = Row.identity) -> list[Row]:
    """Rows of which each evaluation stands once: its last complete Row or else its last, where that one stood."""
    found: dict[Hashable, Row] = {}
    for row in rows:
        name = key(row)
        if name not in found or found[name].status != "complete" or row.status == "complete":
            found.pop(name, None)
            found[name] = row
    return [*found.values()]


def contradictions(rows: Iterable[Row]) -> list[str]:
    """What complete Rows of one training measured otherwise: a line for each that a later one stands for."""
    latest, lines = dict[str, Row](), []
    for row in rows:
        if row.status != "complete":
            continue
        before = latest.get(row.identity(), row)
        differing = [name for name, value in before.metrics.items() if value != row.metrics.get(name)]
        for name in differing[:1]:
            values = f"{name} {before.metrics[name]}, where a later row of it has {row.metrics.get(name)}"
            lines.append(f"the row of training {row.identity()} with {values}")
        latest[row.identity()] = row
    return lines
