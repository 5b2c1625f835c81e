"""The list of benchmarks."""

import importlib
import runpy
import sys
from pathlib import Path

import pytest

import benchmarks.__main__ as listing


def test_list_names_every_benchmark_and_nothing_else() -> None:
    scripts = {path.stem for path in Path(listing.__file__).parent.glob("[!_]*.py")}
    measuring = {name for name in scripts if hasattr(importlib.import_module(f"benchmarks.{name}"), "figures")}
    texts = listing.benchmarks()
    assert set(texts) == measuring
    assert {"overhead", "compiled_step", "noisy_search"} <= set(texts)
    assert not {"form", "landscapes", "plain_gpt", "__main__"} & set(texts)
    assert all(texts.values())


@pytest.mark.filterwarnings("ignore:'benchmarks.__main__' found in sys.modules")
def test_list_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    runpy.run_module("benchmarks.__main__", run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(listing.benchmarks())
    assert lines[0].startswith("python -m benchmarks.compiled_step ")
