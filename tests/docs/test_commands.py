"""Commands in pages parse, and those of the three uses run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from doc_pages import PAGES, ROOT, command_lines
from grouped import grouped
from nas.cli.main import app
from own_process import in_own_process

GROUP = get_command(app)


def calls(text: str) -> list[list[str]]:
    """The words of each call of `nas` in a line."""
    words = shlex.split(text, comments=True)
    lists_of_words = []
    for at, word in enumerate(words):
        if word in ("nas", ".venv/bin/nas") and words[at + 1 : at + 2]:
            rest = words[at + 1 :]
            end = next((i for i, later_word in enumerate(rest) if later_word in ("&&", "|", ";")), len(rest))
            lists_of_words.append(rest[:end])
    return lists_of_words


def in_blocks(page: Path) -> list[list[str]]:
    """Every call of `nas` in a page's blocks, as typed."""
    return [words for line in command_lines(page) if re.search(r"(^|[ /])nas \S", line) for words in calls(line)]


def in_text(page: Path) -> list[list[str]]:
    """Every call of `nas` in a page's sentences, where task and values may be missing."""
    return [words for code in re.findall(r"`(nas [^`\n]+)`", page.read_text()) for words in calls(code)]


BEFORE = ("--debug", "--install-completion", "-v", "-q")
"""Options before the command."""


def command_of(words: list[str]) -> Any:
    """The command of a call; None if unknown."""
    return GROUP.commands.get(next((word for word in words if word not in BEFORE), ""))  # type: ignore[attr-defined]


def refusal(words: list[str]) -> str | None:
    """The parser's error for these words, or None."""
    command = command_of(words)
    if command is None:
        return f"there is no command {words[0]!r}"
    try:
        command.make_context(words[0], words[1:])
    except Exception as error:  # click's exceptions; typer has a copy of click
        return str(error)
    return None


def unknown_flags(words: list[str]) -> list[str]:
    """The unknown command or options of a call in a sentence; COMMAND and --help are allowed."""
    if words[0] in ("COMMAND", "--help", *BEFORE):
        return []
    command = command_of(words)
    if command is None:
        return words[:1]
    flags = {"--help", *(flag for option in command.params for flag in option.opts)}
    return [word for word in words[1:] if re.match(r"-\D", word) and word not in flags]


def test_pages_show_commands_that_the_command_line_takes() -> None:
    with grouped() as case:
        for page in PAGES:
            with case(str(page.relative_to(ROOT))):
                assert not {" ".join(words): why for words in in_blocks(page) if (why := refusal(words))}
                assert not {" ".join(words): wrong for words in in_text(page) if (wrong := unknown_flags(words))}


def test_wrong_commands_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("    nas search digits-vit --trails 3\n    nas serach digits-vit\n    nas evaluate  # what?\n")
    assert all(refusal(words) for words in in_blocks(page))
    page.write_text("```bash\nsrun x -- \\\n  nas search digits-vit --trials 3 | head\n```\n")
    assert [refusal(words) for words in in_blocks(page)] == [None]
    page.write_text("`nas serach digits-vit`, `nas front --limit 3`, `nas search --trials`, `nas COMMAND --help`")
    assert [unknown_flags(words) for words in in_text(page)] == [["serach"], ["--limit"], [], []]


def test_modules_that_pages_run_exist() -> None:
    for page in PAGES:
        for module in re.findall(r"python -m ((?:benchmarks|tests)\.\w+)", page.read_text()):
            place = ROOT / module.replace(".", "/")
            assert place.with_suffix(".py").is_file() or place.is_dir(), (page.name, module)


def quick(words: list[str]) -> list[str]:
    """The same call with the smoke preset and few trials."""
    line = re.sub(r"--trials \d+", "--trials 3", re.sub(r" --(workers|preset) \w+", "", shlex.join(words)))
    line = re.sub(r"(?<!replay:)digit-ranks-vit", "digits-vit", line)  # the one recorded table
    line = line.replace("STUDY", "s").replace("params<=50k", "params<=30k")
    short = {
        "search": " --preset smoke --workers 1" + (" --set epochs=1" if "digits-vit" in line else ""),
        "audit": " --preset smoke --set epochs=1 --architectures 4 --seeds 2 --workers 1",
    }
    line += short.get(words[0], "")
    if words[0] == "search" and "--study" not in line and "moons" not in line:
        line += " --study s"
    return shlex.split(line)


@pytest.mark.outside
def test_commands_of_topology_pictures_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in command_lines(ROOT / "docs" / "guides" / "topology-pictures.md"):
        (words,) = calls(line)
        if "STUDY" in words:  # a user's study
            continue
        done = CliRunner().invoke(
            app, [*words, *(["--preset", "smoke", "--set", "epochs=1"] if words[0] == "evaluate" else [])]
        )
        assert done.exit_code == 0, done.output
    assert {"dca.png", "attnres.png"} <= {path.name for path in tmp_path.iterdir()}


def section(page: Path, heading: str) -> list[str]:
    """The lines of commands below a heading of a page."""
    text = page.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip() for line in re.findall(r"^ {4}(\w.+)$", text, re.MULTILINE)]


@pytest.mark.outside
@pytest.mark.usefixtures("no_other_tests_tasks")
def test_commands_of_the_three_uses_run(tmp_path: Path) -> None:
    lines = ["nas search digits-vit", *section(ROOT / "README.md", "Three uses"), "python moons.py"]
    lines += section(ROOT / "docs" / "guides" / "queries.md", "Ask a question")
    assert len(lines) > 10
    for line in lines:
        if line.startswith("python "):
            command = [sys.executable, *shlex.split(line)[1:]]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
        for call in calls(line):
            done = in_own_process(*quick(call), cwd=tmp_path)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "moons.py").exists()
