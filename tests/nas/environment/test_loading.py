"""Slow loading of a function's modules is shown, and is part of a search's timings."""

import sys
import time

import pytest

import nas
from nas.environment.loading import pop_loading_seconds
from search_spaces.support.progress import LOADING


def test_slow_loading_is_shown_and_enters_the_timings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("search_spaces.support.quiet_timer.SILENCE_S", 0.01)
    monkeypatch.setattr(nas, "_lazily", lambda name: time.sleep(0.2))
    for name in ("evaluate", "search"):
        monkeypatch.delitem(sys.modules, f"nas.api.{name}", raising=False)
        pop_loading_seconds(name)
    _ = nas.evaluate
    assert LOADING in capsys.readouterr().err
    assert pop_loading_seconds("search") == 0.0
    _ = nas.search
    assert pop_loading_seconds("evaluate") >= 0.2
    assert pop_loading_seconds("search") >= 0.2
    assert pop_loading_seconds("search") == 0.0


def test_loaded_function_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert nas.load is nas.load
    pop_loading_seconds("load")
    _ = nas.load
    assert pop_loading_seconds("load") == 0.0
