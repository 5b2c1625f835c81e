"""Options in a file: what a command reads of it, and what it writes."""

import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from nas.cli import app
from nas.run_file import expanded
from search_spaces.errors import UserError
from test_cli import TOY, Nas, nas

__all__ = ["nas"]

COMMANDS = vars(get_command(app))["commands"]


def words(file: Path, text: str, *typed: str, command: str = "search") -> list[str]:
    file.write_text(text)
    return expanded([command, f"@{file}", *typed], COMMANDS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.toml"


def test_a_files_options_are_those_of_a_command_line(file: Path) -> None:
    text = 'trials = 3\ntask = "toys"\nbudget = ["params<=1k", "flops<=2k"]\nprofile = true\nconfirm = 0.5\n'
    said = ["--trials=3", "--budget=params<=1k", "--budget=flops<=2k", "--profile", "--confirm=0.5"]
    assert words(file, text) == ["search", "toys", *said]
    assert words(file, "profile = false") == ["search"]


def test_what_is_typed_wins(file: Path) -> None:
    text = 'trials = 3\nbudget = ["params<=1k"]\n'
    assert words(file, text, "--budget", "flops<=1M") == [
        *("search", "--trials=3"),
        *("--budget", "flops<=1M"),
    ]
    typed = words(file, 'study = "a"\noutput = "a.csv"\n', "-o", "b.csv", "--study=b", command="results")
    assert typed == ["results", "-o", "b.csv", "--study=b"]


def test_arguments_stand_in_the_commands_order(file: Path) -> None:
    text = 'key = "ab"\nto = "x.onnx"\nstudy = "mine"\n'
    assert words(file, text, command="export") == ["export", "mine", "ab", "--to=x.onnx"]
    assert words(file, 'file = ["a.jsonl", "b.jsonl"]', command="import") == ["import", "a.jsonl", "b.jsonl"]


def test_a_command_line_without_a_file_is_left_as_it_is() -> None:
    for line in (["search", "toys", "--trials", "3"], ["@no.toml"], ["--version"], ["list", "@"]):
        assert expanded(line, COMMANDS) == line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trialz = 3", "unknown option in .*run.toml 'trialz'. Did you mean 'trials'?"),
        ("save-config = 'x'", "unknown option in .*run.toml 'save-config'"),
        ("trials = \nseed = 1", "run.toml is no TOML: Invalid value .at line 1"),
        (
            "trials = {a = 1}",
            "trials in .*run.toml must be text, a number, true, false or a list of these, got {'a': 1}",
        ),
        ("trials = [[1]]", "must be text, a number"),
    ],
)
def test_what_cannot_be_is_a_line(file: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        words(file, text)


def test_a_file_that_is_not_there_is_a_line(file: Path) -> None:
    with pytest.raises(UserError, match=r"run\.toml cannot be read: No such file"):
        expanded(["search", f"@{file}"], COMMANDS)


def test_what_was_typed_is_written_and_read_again(nas: Nas, tmp_path: Path) -> None:
    typed = ["--trials", "2", "--budget", "params<=1M", "--preset", "smoke", "--confirm", "0", "--study", "mine"]
    status, first, _ = nas("search", TOY, *typed, "--save-config", "run.toml")
    assert status == 0
    written = tomllib.loads((tmp_path / "run.toml").read_text())
    said = {"trials": 2, "budget": ["params<=1M"], "preset": "smoke", "confirm": 0.0, "study": "mine"}
    assert written == {"task": TOY, **said}
    status, again, _ = nas("search", "@run.toml")
    assert (status, again) == (0, first)
    assert nas("search", "@run.toml", "--study", "other", "--trials", "1")[0] == 0
    status, out, _ = nas("list", "studies")
    assert "other" in out
    status, _, err = nas("search", "@run.toml", "--save-config", "no/where.toml")
    assert (status, err) == (2, "nas: --save-config no/where.toml cannot be written: No such file or directory.\n")
