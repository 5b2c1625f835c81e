"""What is shown while something takes its time: a bar of trials, or what is being done; never on standard output."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread
from types import TracebackType
from typing import Self

import rich.progress
from rich.console import Console
from rich.markup import escape

from nas.places import QUIET
from results.row import Row
from search_spaces.errors import printable

SILENCE_S = 2.0
"""Seconds after which something is said."""


def _screen() -> Console:
    """Standard error; where nothing is to be said of progress (`nas --quiet`), one that keeps it to itself."""
    return Console(stderr=True, quiet=bool(os.environ.get(QUIET)))


class Progress:
    """A context that is told of each Row as it comes, and writes to standard error.

    Args:
        title: What is evaluated.
        scores: The columns that are shown.
        done: The identities of the Rows that there are already: what goes on from one of them is not counted twice.
        total: How many there are to be.
    """

    def __init__(self, title: str, scores: Sequence[str], done: Iterable[str], total: int) -> None:
        self._ended = set(done)
        self._console = _screen()
        self._bar = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}", markup=False),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TimeRemainingColumn(),
            rich.progress.TextColumn("{task.fields[last]}", markup=False),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._scores, self._total = scores, total
        self._task = self._bar.add_task(printable(title), total=total, completed=len(self._ended), last="")

    def add(self, row: Row) -> None:
        """Show that an evaluation has ended and how."""
        self._ended.add(row.identity())
        number = len(self._ended)
        columns = row.columns()
        scores = " ".join(f"{name} {columns[name]:.4g}" for name in self._scores if columns.get(name) is not None)
        last = f"{row.architecture.topology} {row.error or scores}"
        self._bar.update(self._task, completed=number, last=printable(last))
        if row.status == "failed" or not self._console.is_terminal:
            state = "" if row.status == "complete" else f"{row.status}: "
            shown = f"{number}/{self._total} {state}{row.architecture} seed={row.seed} {scores} {row.error or ''}"
            console = Console(stderr=True) if row.status == "failed" else self._console
            console.print(printable(shown.rstrip()), highlight=False, soft_wrap=True, markup=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[str], None]]:
    """Gives what is to be called, with a few words, whenever one of so many things is done: a bar, or a line each."""
    console = _screen()
    words = (
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeRemainingColumn(),
        rich.progress.TextColumn("{task.fields[last]}", markup=False),
    )
    with rich.progress.Progress(*words, console=console, disable=not console.is_terminal) as shown:
        task, done = shown.add_task(printable(title), total=total, last=""), count(1)

        def ended(last: str) -> None:
            number = next(done)
            shown.update(task, completed=number, last=printable(last))
            if not console.is_terminal:
                console.print(
                    printable(f"{number}/{total} {title} {last}"), highlight=False, soft_wrap=True, markup=False
                )

        yield ended


def say(line: str) -> None:
    """Tell what is being done, on standard error."""
    _screen().print(printable(line), soft_wrap=True, highlight=False, markup=False)


@contextmanager
def said_if_slow(message: str) -> Iterator[None]:
    """Say on standard error what is being done, once it has taken two seconds: in a terminal as long as it takes.

    It moves once a second, for what is done meanwhile may be timed.
    """
    message, console, over = printable(message), _screen(), Event()

    def speak() -> None:
        if over.wait(SILENCE_S):
            return
        if not console.is_terminal:
            console.print(message, highlight=False, markup=False, soft_wrap=True)
            return
        with console.status(escape(message), refresh_per_second=1):
            over.wait()

    speaker = Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        over.set()
        speaker.join()
