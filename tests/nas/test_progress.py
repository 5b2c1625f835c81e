"""What is said of things under way: bars in a terminal, elsewhere a line now and then."""

import io
import time

import pytest
from rich.console import Console

from nas import progress
from nas.progress import Progress, say_more


def test_a_thing_under_way_is_told_with_its_step_and_its_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENCE_S", 0.1)
    monkeypatch.setattr(progress, "_TICK_S", 0.05)
    began = time.monotonic()
    with Progress("trainings", 4, 1) as shown:
        shown.begin("a", "net a", lambda: (int(100 * (time.monotonic() - began)), 1000))
        shown.begin("b", "net b", lambda: None)
        time.sleep(0.6)
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 4  # ever more rarely
    assert lines[-1].startswith("1/4 trainings, 0:00:")
    assert "; net a: step " in lines[-1]
    assert " of 1000, 0:00:" in lines[-1]
    assert lines[-1].endswith(" left; net b: begun")


def test_what_is_quick_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("trainings", 4) as shown:
        shown.advance()
    assert capsys.readouterr().err == ""


def test_words_of_what_is_done_are_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("searches", 2) as shown:
        shown.advance("tpe")
        shown.advance("nsga2")
    assert capsys.readouterr().err == "1/2 searches tpe\n2/2 searches nsga2\n"


def test_a_single_thing_is_told_by_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENCE_S", 0.1)
    monkeypatch.setattr(progress, "_TICK_S", 0.05)
    with Progress("trainings", 1) as shown:
        shown.begin("a", "net a", lambda: (3, 10))
        time.sleep(0.3)
    assert capsys.readouterr().err.splitlines()[0] == "net a: step 3 of 10"


def test_bars_of_all_and_of_each_are_drawn_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(progress, "_screen", lambda: Console(file=screen, force_terminal=True, width=150))
    monkeypatch.setattr(progress, "_TICK_S", 0.05)
    with Progress("trainings", 4) as shown:
        shown.begin("a", "net a", lambda: (250, 1000))
        shown.begin("again", "net b", lambda: (500, 1000), weight=0.0)
        time.sleep(0.4)
        (whole,) = [task for task in shown._bars.tasks if task.description == "trainings"]
        assert whole.completed == 0.25  # what goes on from an earlier end is not counted twice
        shown.end("a")
        shown.reach(1, "good")
    text = screen.getvalue()
    for words in ("trainings", "net a", "250/1000", "1/4", "good"):
        assert words in text


def test_more_is_said_only_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAS_VERBOSE", raising=False)
    say_more("more")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("NAS_VERBOSE", "1")
    say_more("more")
    assert capsys.readouterr().err == "more\n"
