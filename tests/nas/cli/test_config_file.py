"""Options in a file: commands read them and write them."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from command_line import Command
from expect import raises
from grouped import grouped
from nas.cli.config_file import expand_config_file
from nas.cli.main import app
from search_spaces.support.errors import Kind
from toy_searches import TOY

COMMANDS = vars(get_command(app))["commands"]


def words(file: Path, text: str, *arguments: str, command: str = "search") -> list[str]:
    file.write_text(text)
    return expand_config_file([command, f"@{file}", *arguments], COMMANDS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.toml"


def test_options_of_a_file_become_words_of_the_command(file: Path) -> None:
    text = 'trials = 3\ntask = "toys"\nbudget = ["params<=1k", "flops<=2k"]\nprofile = true\nreeval-fraction = 0.5\n'
    options = ["--trials=3", "--budget=params<=1k", "--budget=flops<=2k", "--profile", "--reeval-fraction=0.5"]
    assert words(file, text) == ["search", "toys", *options]
    assert words(file, "profile = false") == ["search"]


def test_command_line_wins_over_the_file(file: Path) -> None:
    text = 'trials = 3\nbudget = ["params<=1k"]\n'
    assert words(file, text, "--budget", "flops<=1M") == ["search", "--trials=3", "--budget", "flops<=1M"]
    line = words(file, 'study = "a"\noutput = "a.csv"\n', "-o", "b.csv", "--study=b", command="results")
    assert line == ["results", "-o", "b.csv", "--study=b"]


def test_arguments_of_a_file_are_in_the_order_of_the_command(file: Path) -> None:
    text = 'key = "ab"\nto = "x.onnx"\nstudy = "mine"\n'
    assert words(file, text, command="export") == ["export", "mine", "ab", "--to=x.onnx"]
    assert words(file, 'file = ["a.jsonl", "b.jsonl"]', command="import") == ["import", "a.jsonl", "b.jsonl"]


def test_command_line_without_a_file_stays_the_same() -> None:
    for line in (["search", "toys", "--trials", "3"], ["@no.toml"], ["--version"], ["list", "@"]):
        assert expand_config_file(line, COMMANDS) == line


def test_wrong_files_are_errors(file: Path) -> None:
    mistakes: list[tuple[str, Kind, dict[str, Any]]] = [
        ("trialz = 3", "unknown-name", {"value": "trialz", "nearest": "trials"}),
        ("save-config = 'x'", "unknown-name", {"value": "save-config"}),
        ("trials = \nseed = 1", "bad-file", {"path": str(file)}),
        ("trials = {a = 1}", "wrong-type", {"option": "trials", "value": {"a": 1}, "path": str(file)}),
        ("trials = [[1]]", "wrong-type", {"option": "trials", "value": [[1]]}),
    ]
    with raises("missing-file", path=str(file)):
        expand_config_file(["search", f"@{file}"], COMMANDS)
    with grouped() as case:
        for text, kind, fields in mistakes:
            with case(text), raises(kind, **fields):
                words(file, text)


def test_saved_options_can_be_read_again(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.report.study.Study.plot", lambda *arguments: None)  # a picture takes longer than a search
    options = (
        "--trials 2 --budget params<=1M --preset smoke --reeval-fraction 0 --study mine --space depth-heads".split()
    )
    first = command("search", TOY, *options, "--save-config", "run.toml")
    assert first.returncode == 0
    config = tomllib.loads((tmp_path / "run.toml").read_text())
    expected = {"trials": 2, "budget": ["params<=1M"], "preset": "smoke", "reeval-fraction": 0.0, "study": "mine"}
    expected["space"] = "depth-heads"
    assert config == {"task": TOY, **expected}
    again = command("search", "@run.toml")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert command("search", "@run.toml", "--study", "other", "--trials", "1").returncode == 0
    assert "other" in command("list", "studies").stdout
    unwritable = command("search", "@run.toml", "--save-config", "no/where.toml")
    unwritable.assert_error("unwritable", option="--save-config", path="no/where.toml")
