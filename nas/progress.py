"""What is shown while something takes its time: how far things are, or what is being done; never on standard output."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, RLock, Thread
from types import TracebackType
from typing import Self

import rich.progress
from rich.console import Console
from rich.markup import escape

from nas.places import QUIET, VERBOSE
from search_spaces.errors import printable

SILENCE_S = 2.0
"""Seconds after which something is said."""

_RARELY_S = 60.0
"""Where there is no terminal, lines come ever more rarely, down to one in so many seconds."""

_TICK_S = 1.0
"""Seconds between looks at what is under way: no more often, for it may be timed."""

_MOST_SHOWN = 8
"""Of what is under way."""

Reached = Callable[[], tuple[int, int] | None]
"""How many steps of how many something under way has taken, or None where that is not known (yet)."""


def _screen() -> Console:
    """Standard error; where nothing is to be said of progress (`nas --quiet`), one that keeps it to itself."""
    return Console(stderr=True, quiet=bool(os.environ.get(QUIET)))


@dataclass(frozen=True)
class _UnderWay:
    """Something that has begun and not ended, its bar, how far it is, and how much of one thing its end will be."""

    bar: rich.progress.TaskID
    reached: Reached
    weight: float


class Progress:
    """A context that shows how many things are done, how far those under way are, and the time left of each and of all.

    In a terminal it is bars, elsewhere a line now and then, on standard error. A single thing that has begun is shown
    by its own bar alone.

    Args:
        title: What is done.
        total: How many there are.
        number: How many of them are done already.
    """

    def __init__(self, title: str, total: int, number: int = 0) -> None:
        self._console = _screen()
        self._bars = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}", markup=False),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TimeRemainingColumn(),
            rich.progress.TextColumn("{task.fields[last]}", markup=False),
            console=self._console,
            disable=not self._console.is_terminal,
            refresh_per_second=1 / _TICK_S,
            speed_estimate_period=3600.0,
        )
        self._title, self._number, self._total = printable(title), number, total
        self._all = self._bars.add_task(self._title, total=total, completed=number, last="", visible=total > 1)
        self._under_way: dict[str, _UnderWay] = {}
        self._lock, self._over = RLock(), Event()
        self._watcher = Thread(target=self._watch, daemon=True)

    def begin(self, name: str, words: str, reached: Reached, weight: float = 1.0) -> None:
        """Show something that is under way from now on, and how much of one thing is done once it is."""
        with self._lock:
            shown = len(self._under_way) < _MOST_SHOWN
            bar = self._bars.add_task(f"  {printable(words)}", total=None, last="", visible=shown)
            self._under_way[name] = _UnderWay(bar, reached, weight)

    def end(self, name: str) -> None:
        """Show no more what was under way, if it was."""
        with self._lock:
            ended = self._under_way.pop(name, None)
            if ended is not None:
                self._bars.remove_task(ended.bar)

    def reach(self, number: int, last: str = "") -> None:
        """Show that so many things are done, and a few words of the last one."""
        with self._lock:
            self._number = number
            self._bars.update(self._all, completed=number, last=printable(last))

    def advance(self, last: str = "") -> None:
        """Show that one more is done; where there are words of it, they are a line where there is no terminal."""
        self.reach(self._number + 1, last)
        if last and not self._console.is_terminal:
            self.tell(f"{self._number}/{self._total} {self._title} {last}")

    def tell(self, line: str) -> None:
        """Write a line above the bars."""
        _write(self._console, line)

    @property
    def is_drawn(self) -> bool:
        """Whether there are bars, and lines are not all there is."""
        return self._console.is_terminal

    def __enter__(self) -> Self:
        self._bars.start()
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._watcher.join()
        self._bars.stop()

    def _watch(self) -> None:
        pause, spoken = SILENCE_S, time.monotonic()
        while not self._over.wait(_TICK_S):
            self._look()
            if not self._console.is_terminal and time.monotonic() - spoken >= pause:
                self.tell(self._line())
                pause, spoken = min(2 * pause, _RARELY_S), time.monotonic()

    def _look(self) -> None:
        """Bring all bars to where things are: of what is under way the steps taken count as their share."""
        with self._lock:
            parts = 0.0
            for one in self._under_way.values():
                reached = one.reached()
                if reached is not None:
                    self._bars.update(one.bar, completed=reached[0], total=reached[1])
                    parts += one.weight * min(1.0, reached[0] / max(1, reached[1]))
            self._bars.update(self._all, completed=min(self._number + parts, self._total))

    def _line(self) -> str:
        """All that the bars say, in words."""
        with self._lock:
            tasks = {task.id: task for task in self._bars.tasks}
            parts = [_in_words(tasks[one.bar]) for one in self._under_way.values() if tasks[one.bar].visible]
            hidden = len(self._under_way) - len(parts)
            if tasks[self._all].visible:
                left = _left(tasks[self._all])
                parts.insert(0, f"{self._number}/{self._total} {self._title}{left}")
        return "; ".join([*parts, *([f"and {hidden} more"] if hidden else [])]) or self._title


def _in_words(task: rich.progress.Task) -> str:
    words = task.description.strip()
    return (
        f"{words}: begun" if task.total is None else f"{words}: step {task.completed:g} of {task.total:g}{_left(task)}"
    )


def _left(task: rich.progress.Task) -> str:
    seconds = task.time_remaining
    return (
        "" if seconds is None else f", {int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02} left"
    )


def _write(console: Console, line: str) -> None:
    console.print(printable(line), soft_wrap=True, highlight=False, markup=False)


def say(line: str) -> None:
    """Tell what is being done, on standard error."""
    _write(_screen(), line)


def warn(line: str) -> None:
    """Tell what went wrong, on standard error, to those who want no progress, too."""
    _write(Console(stderr=True), line)


def say_more(line: str) -> None:
    """Tell what is only for those who want to know more (`nas --verbose`)."""
    if os.environ.get(VERBOSE):
        say(line)


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
            _write(console, message)
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
