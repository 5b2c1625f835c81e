"""Progress: bars in a terminal, otherwise occasional lines."""

import io
import re
from itertools import count, islice

import pytest
from rich.console import Console

from command_line import log_level
from search_spaces.support import progress
from search_spaces.support.logger import LOGGER
from search_spaces.support.progress import Progress
from waiting import until


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("quiet_timer.SILENCE_S", "progress.SILENCE_S", "progress._TICK_S", "progress._RARELY_S"):
        monkeypatch.setattr(f"search_spaces.support.{name}", 0.05)


def record_lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The list of printed lines."""
    lines: list[str] = []
    monkeypatch.setattr(LOGGER, "filters", [lambda record: lines.append(record.getMessage())])
    return lines


def numbers(line: str) -> list[str]:
    """The times, shares and other numbers in a line."""
    return re.findall(r"\d+:\d\d:\d\d|\d+/\d+|\b\d+", line)


@pytest.mark.usefixtures("_soon")
def test_a_line_has_steps_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, steps = record_lines(monkeypatch), count()
    with Progress("trainings", 4, 1) as bar:
        bar.begin("a", "net a", lambda: (next(steps), 10_000))
        bar.begin("b", "net b", lambda: None)
        until(lambda: lines and len(numbers(lines[-1])) == 5, "the time left of one and of all is in a line")
    assert re.match(r"1/4 trainings.*; net a.*; net b", lines[-1])
    whole, first, second = lines[-1].split("; ")
    assert re.fullmatch(r"1/4 \d+:\d\d:\d\d", " ".join(numbers(whole)))
    assert re.fullmatch(r"\d+ 10000 \d+:\d\d:\d\d", " ".join(numbers(first)))
    assert numbers(second) == []


def test_earlier_work_does_not_count_for_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "_screen", lambda: Console(file=io.StringIO(), get_time=lambda: now[0]))
    bar = Progress("trainings", 10)
    for number in (1, 2, 3, 4):
        bar.set_done_untimed(number)
    for number in (5, 6):
        now[0] += 100
        bar.set_done(number)
    assert numbers(bar._line()) == ["6/10", "0:06:40"]
    bar.set_done_untimed(7)  # earlier speed is kept
    assert numbers(bar._line()) == ["7/10", "0:05:00"]


def test_pauses_between_lines_grow() -> None:
    assert list(islice(progress._pauses(), 7)) == [2, 4, 8, 16, 32, 60, 60]


def test_quick_work_prints_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENCE_S", 3600.0)
    with Progress("trainings", 4) as bar:
        bar.advance()
    assert capsys.readouterr().err == ""


def test_finished_work_with_a_name_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("searches", 2) as bar:
        bar.advance("tpe")
        bar.advance("nsga2")
    lines = capsys.readouterr().err.splitlines()
    assert [(*numbers(line), line.split()[-1]) for line in lines] == [("1/2", "tpe"), ("2/2", "nsga2")]


@pytest.mark.usefixtures("_soon")
def test_progress_of_one_item_has_no_total(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = record_lines(monkeypatch)
    with Progress("trainings", 1) as bar:
        bar.begin("a", "net a", lambda: (3, 10))
        until(lambda: lines, "a line is said")
    assert lines[0].startswith("net a")
    assert numbers(lines[0]) == ["3", "10"]


@pytest.mark.usefixtures("_soon")
def test_work_without_a_known_end_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = record_lines(monkeypatch)
    with Progress("counts", None) as bar:
        bar.advance()
        until(lambda: lines, "a line is said")
    assert lines[0].startswith("1 counts")


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> io.StringIO:
    """The output of a terminal with so many columns."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width)
    monkeypatch.setattr(progress, "_screen", lambda: console)
    return screen


@pytest.mark.usefixtures("_soon")
def test_bars_are_drawn_in_a_terminal_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, 80)
    with Progress("trainings", 4) as bar:
        bar.begin("a", "net a " + 80 * "-", lambda: (250, 1000))
        bar.begin("again", "net b", lambda: (500, 1000), weight=0.0)
        until(lambda: "250/1000" in screen.getvalue(), "bars are drawn")
        (whole,) = [task for task in bar._bars.tasks if task.description == "trainings"]
        assert whole.completed == 0.25  # resumed work is not counted twice
        bar.end("a")
        bar.set_done(1, "good")
        until(lambda: "good" in screen.getvalue(), "the last one is named")
    text = screen.getvalue()
    for words in ("trainings", "net a --", "1/4", "\N{HORIZONTAL ELLIPSIS}"):
        assert words in text
    lines = re.split(r"\r|\n", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text))
    assert max(map(len, lines)) == 77  # leaves room for ^C
    assert text.rstrip().endswith("\x1b[2K")  # the last line is erased ...
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")  # ... and the cursor shown


@pytest.mark.usefixtures("_soon")
def test_lines_are_printed_above_the_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, 80)
    with Progress("trainings", 4) as bar:
        bar.begin("a", "net a", lambda: (250, 1000))
        until(lambda: "250/1000" in screen.getvalue(), "bars are drawn")
        LOGGER.info("a line")
        with progress.status_if_slow("profiling"):
            until(lambda: "profiling" in screen.getvalue(), "it is said what takes its time")
    assert "a line" in screen.getvalue()


@pytest.mark.usefixtures("_soon")
def test_quiet_shows_warnings_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    screen, calls = terminal(monkeypatch, 80), count()
    with log_level("WARNING"), Progress("trainings", 4) as bar:
        bar.begin("a", "net a", lambda: (next(calls), 1000))
        until(lambda: next(calls) > 10, "it was looked several times")
        LOGGER.info("a line")
        LOGGER.warning("it failed")
    assert screen.getvalue() == ""
    assert capsys.readouterr().err == "it failed\n"
