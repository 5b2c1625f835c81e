"""Progress bars and status lines on standard error."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Event, RLock, Thread
from types import TracebackType
from typing import Self, final

import rich.progress
from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.markup import escape
from rich.table import Column
from rich.text import Text

from search_spaces.support.errors import printable
from search_spaces.support.logger import LOGGER
from search_spaces.support.quiet_timer import OUTPUT_TIMER, SILENCE_S

LOADING = "loading PyTorch and other packages ..."
"""Message of a command that is slow to start."""

_RARELY_S = 60.0
"""Longest pause between lines without a terminal; pauses double up to it."""

_TICK_S = 1.0
"""Seconds between updates; rare, because the work may be timed."""

_MAX_BARS = 8
"""Maximum number of bars for running tasks."""

StepCounter = Callable[[], tuple[int, int] | None]
"""Returns the steps taken and the total steps of a running task, or None if unknown."""


@cache
def _screen() -> Console:
    """Return the console on standard error. It is shared, so that nested displays are drawn together."""
    return Console(stderr=True)


def _is_quiet() -> bool:
    return not LOGGER.isEnabledFor(logging.INFO)


@final
class _Words(rich.progress.ProgressColumn):
    """Description and last message on one line, truncated to the space that other columns leave."""

    def render(self, task: rich.progress.Task) -> Text:
        return Text(f"{task.description} {task.fields['last']}".rstrip(), no_wrap=True, overflow="ellipsis")


@final
class _RemainingTime(rich.progress.ProgressColumn):
    def render(self, task: rich.progress.Task) -> Text:
        return Text(_remaining_time(task) or " " * len("0:00:00 left"), no_wrap=True)


@final
class _Bars(rich.progress.Progress):
    """Bars that leave room for the ^C that a terminal echoes behind the last one; otherwise it would wrap."""

    def get_renderables(self) -> Iterator[RenderableType]:
        for table in super().get_renderables():
            yield Constrain(table, _screen().width - len("^C") - 1)


@dataclass(frozen=True)
class _RunningTask:
    """A running task: its bar, its step counter, and its weight in the total."""

    bar: rich.progress.TaskID
    steps: StepCounter
    weight: float


class Progress:
    """A context that shows how many items are done, the progress of running ones, and the remaining times.

    In a terminal it draws bars after two seconds; elsewhere it prints occasional lines. Both go to standard error. A
    single item is shown by its own bar only.

    Args:
        title: The work that is done.
        total: Number of items; None if unknown.
        number: Number of items already done.
    """

    def __init__(self, title: str, total: int | None, number: int = 0) -> None:
        self._console = _screen()
        self._bars = _Bars(
            rich.progress.BarColumn(bar_width=16, table_column=Column(no_wrap=True)),
            rich.progress.MofNCompleteColumn(table_column=Column(no_wrap=True, justify="right")),
            _RemainingTime(table_column=Column(no_wrap=True)),
            _Words(),
            console=self._console,
            transient=True,
            refresh_per_second=1 / _TICK_S,
            speed_estimate_period=3600.0,
        )
        self._title, self._number, self._total = printable(title), number, total
        self._all = self._bars.add_task(self._title, total=total, completed=number, last="", visible=total != 1)
        self._running: dict[str, _RunningTask] = {}
        self._lock, self._over = RLock(), Event()
        self._watcher = Thread(target=self._watch, daemon=True)

    def begin(self, name: str, words: str, steps: StepCounter, weight: float = 1.0) -> None:
        """Add a running task; `weight` is the number of items that it completes."""
        with self._lock:
            bar = self._bars.add_task(printable(words), total=None, last="", visible=len(self._running) < _MAX_BARS)
            self._running[name] = _RunningTask(bar, steps, weight)

    def end(self, name: str) -> bool:
        """Remove a running task. Returns whether it was there."""
        with self._lock:
            entry = self._running.pop(name, None)
            if entry is not None:
                self._bars.remove_task(entry.bar)
            return entry is not None

    def set_done(self, number: int, last: str = "") -> None:
        """Set the number of items done, and a message of the last one."""
        with self._lock:
            self._number = number
            self._bars.update(self._all, completed=number, last=printable(last))

    def set_done_untimed(self, number: int, last: str = "") -> None:
        """Set the number of items done without counting the last one in the speed estimate."""
        with self._lock:
            self._number = number
            (task,) = (task for task in self._bars.tasks if task.id == self._all)
            task.completed = number  # adds no sample to the speed estimate
            self._bars.update(self._all, last=printable(last))

    def advance(self, last: str = "") -> None:
        """Add one item; without a terminal, a message is printed as a line."""
        self.set_done(self._number + 1, last)
        if last and not self.is_drawn:
            LOGGER.info(f"{self._so_far()} {self._title} {last}")

    @property
    def is_drawn(self) -> bool:
        """Whether bars are drawn."""
        return self._console.is_terminal and not _is_quiet()

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        if not self.is_drawn:
            self._print_periodically()
        elif not self._over.wait(OUTPUT_TIMER.remaining()):
            self._update_bars()
            with self._bars:
                while not self._over.wait(_TICK_S):
                    self._update_bars()
                    OUTPUT_TIMER.reset()
            OUTPUT_TIMER.reset()

    def _print_periodically(self) -> None:
        pauses = _pauses()
        next_line = time.monotonic() + min(OUTPUT_TIMER.remaining(), next(pauses))
        while not self._over.wait(_TICK_S):
            self._update_bars()
            if time.monotonic() >= next_line:
                LOGGER.info(self._line())
                next_line = time.monotonic() + next(pauses)

    def _update_bars(self) -> None:
        """Update all bars; running tasks count by their share of steps."""
        with self._lock:
            parts = 0.0
            for place, task in enumerate(self._running.values()):
                self._bars.update(task.bar, visible=place < _MAX_BARS)
                steps = task.steps()
                if steps is not None:
                    self._bars.update(task.bar, completed=steps[0], total=steps[1])
                    parts += task.weight * min(1.0, steps[0] / max(1, steps[1]))
            done = self._number + parts
            self._bars.update(self._all, completed=done if self._total is None else min(done, self._total))

    def _so_far(self) -> str:
        return str(self._number) if self._total is None else f"{self._number}/{self._total}"

    def _line(self) -> str:
        with self._lock:
            tasks = {task.id: task for task in self._bars.tasks}
            parts = [_in_words(tasks[entry.bar]) for entry in self._running.values() if tasks[entry.bar].visible]
            hidden = len(self._running) - len(parts)
            if tasks[self._all].visible:
                remaining = _remaining_time(tasks[self._all])
                parts.insert(0, f"{self._so_far()} {self._title}" + (remaining and f", {remaining}"))
        return "; ".join([*parts, *([f"and {hidden} more"] if hidden else [])]) or self._title


def _pauses() -> Iterator[float]:
    pause = SILENCE_S
    while True:
        yield pause
        pause = min(2 * pause, _RARELY_S)


def _in_words(task: rich.progress.Task) -> str:
    if task.total is None:
        return f"{task.description}: no step yet"
    remaining = _remaining_time(task)
    return f"{task.description}: step {int(task.completed)} of {int(task.total)}" + (remaining and f", {remaining}")


def _remaining_time(task: rich.progress.Task) -> str:
    if task.time_remaining is None:
        return ""
    minutes, seconds = divmod(int(task.time_remaining), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02} left"


@contextmanager
def status_if_slow(message: str) -> Iterator[None]:
    """Show a status message on standard error if this takes longer than two seconds; in a terminal until it ends.

    It is redrawn once a second, because the work may be timed.
    """
    message, console, over, patience = printable(message), _screen(), Event(), OUTPUT_TIMER.remaining()

    def speak() -> None:
        if over.wait(patience):
            return
        if _is_quiet() or not console.is_terminal:
            LOGGER.info(message)
            return
        with console.status(escape(message), refresh_per_second=1) as status:
            status.update(spinner="dots")  # draw it now instead of in a second
            over.wait()
        OUTPUT_TIMER.reset()

    speaker = Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        over.set()
        speaker.join()
