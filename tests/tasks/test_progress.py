"""What is said of things under way: bars in a terminal, elsewhere a line now and then."""

import io
import re
from itertools import count, islice

import pytest
from rich.console import Console

from tasks import progress
from tasks.progress import Progress, say_more
from waiting import until


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("silence.SILENCE_S", "progress.SILENCE_S", "progress._TICK_S", "progress._RARELY_S"):
        monkeypatch.setattr(f"tasks.{name}", 0.05)


def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines as they are said."""
    lines: list[str] = []
    monkeypatch.setattr(progress, "warn", lines.append)
    return lines


@pytest.mark.usefixtures("_soon")
def test_a_thing_under_way_is_told_with_its_step_and_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, steps = said(monkeypatch), count()
    with Progress("trainings", 4, 1) as shown:
        shown.begin("a", "net a", lambda: (next(steps), 10_000))
        shown.begin("b", "net b", lambda: None)
        until(lambda: lines and lines[-1].count(" left") == 2, "the time left is said of one and of all")
    assert re.fullmatch(
        r"1/4 trainings, \d+:\d\d:\d\d left; net a: step \d+ of 10000, \d+:\d\d:\d\d left; net b: no step yet",
        lines[-1],
    )


def test_what_was_done_before_does_not_tell_how_long_the_rest_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "_screen", lambda: Console(file=io.StringIO(), get_time=lambda: now[0]))
    shown = Progress("trainings", 10)
    for number in (1, 2, 3, 4):
        shown.reach_at_once(number)
    for number in (5, 6):
        now[0] += 100
        shown.reach(number)
    assert shown._line() == "6/10 trainings, 0:06:40 left"
    shown.reach_at_once(7)  # and what was seen is not forgotten
    assert shown._line() == "7/10 trainings, 0:05:00 left"


def test_lines_come_ever_more_rarely() -> None:
    assert list(islice(progress._pauses(), 7)) == [2, 4, 8, 16, 32, 60, 60]


def test_what_is_quick_is_not_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENCE_S", 3600.0)
    with Progress("trainings", 4) as shown:
        shown.advance()
    assert capsys.readouterr().err == ""


def test_words_of_what_is_done_are_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("searches", 2) as shown:
        shown.advance("tpe")
        shown.advance("nsga2")
    assert capsys.readouterr().err == "1/2 searches tpe\n2/2 searches nsga2\n"


@pytest.mark.usefixtures("_soon")
def test_a_single_thing_is_told_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = said(monkeypatch)
    with Progress("trainings", 1) as shown:
        shown.begin("a", "net a", lambda: (3, 10))
        until(lambda: lines, "a line is said")
    assert lines[0] == "net a: step 3 of 10"


@pytest.mark.usefixtures("_soon")
def test_what_has_no_known_end_is_told_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = said(monkeypatch)
    with Progress("counts", None) as shown:
        shown.advance()
        until(lambda: lines, "a line is said")
    assert lines[0].startswith("1 counts")


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> io.StringIO:
    """What is written to a terminal of so many columns."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width)
    monkeypatch.setattr(progress, "_screen", lambda: console)
    return screen


@pytest.mark.usefixtures("_soon")
def test_bars_of_all_and_of_each_are_drawn_in_a_terminal_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, 80)
    with Progress("trainings", 4) as shown:
        shown.begin("a", "net a " + 80 * "-", lambda: (250, 1000))
        shown.begin("again", "net b", lambda: (500, 1000), weight=0.0)
        until(lambda: "250/1000" in screen.getvalue(), "bars are drawn")
        (whole,) = [task for task in shown._bars.tasks if task.description == "trainings"]
        assert whole.completed == 0.25  # what goes on from an earlier end is not counted twice
        shown.end("a")
        shown.reach(1, "good")
        until(lambda: "good" in screen.getvalue(), "the last one is named")
    text = screen.getvalue()
    for words in ("trainings", "net a --", "1/4", "\N{HORIZONTAL ELLIPSIS}"):
        assert words in text
    drawn = re.split(r"\r|\n", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text))
    assert max(map(len, drawn)) == 77  # of 80: ^C has room
    assert text.rstrip().endswith("\x1b[2K")  # the last line is erased ...
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")  # ... and the cursor shown


@pytest.mark.usefixtures("_soon")
def test_what_is_said_inside_stands_above_the_bars_and_another_one_inside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, 80)
    with Progress("trainings", 4) as shown:
        shown.begin("a", "net a", lambda: (250, 1000))
        until(lambda: "250/1000" in screen.getvalue(), "bars are drawn")
        progress.say("a line")
        with progress.said_if_slow("profiling"):
            until(lambda: "profiling" in screen.getvalue(), "it is said what takes its time")
    assert "a line" in screen.getvalue()


@pytest.mark.usefixtures("_soon")
def test_who_wants_quiet_sees_nothing_drawn_and_is_told_what_went_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(progress.QUIET, "1")
    screen, looked = terminal(monkeypatch, 80), count()
    with Progress("trainings", 4) as shown:
        shown.begin("a", "net a", lambda: (next(looked), 1000))
        until(lambda: next(looked) > 10, "it was looked several times")
        progress.say("a line")
        progress.warn("it failed")
    assert screen.getvalue() == ""
    assert capsys.readouterr().err == "it failed\n"


def test_more_is_said_only_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAS_VERBOSE", raising=False)
    say_more("more")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("NAS_VERBOSE", "1")
    say_more("more")
    assert capsys.readouterr().err == "more\n"
