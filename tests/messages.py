"""A snapshot of all error messages and notices of the default suite: tests/messages.txt.

Other tests assert kinds and fields (`expect`). A run of the suite, or of a part, fails once if it provokes new
messages. After a change of texts, update the snapshot and read the diff:

    python -m tests.messages --update              # the whole suite: rewrite the snapshot
    python -m tests.messages --update tests/nas    # a part: add its messages

Names of fields replace their values, as in "got <value>", and other words that differ between runs or machines.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from search_spaces.support.errors import ContractError, Notice, UserError

SNAPSHOT = Path(__file__).with_suffix(".txt")
_ROOT = SNAPSHOT.parents[1]
_KEY = "nas_messages"
_MARGIN = 20
"""Columns of a kind in the snapshot."""
_CONTRACT = "contract"
"""What stands there for a ContractError, which has a rule in place of a kind."""

_VARYING = (
    (re.compile(r"(?<![\w])/[^\s'\",;]*?/pytest-of-[^/]+/pytest-\d+/(?:popen-gw\d+/)?[^/\s'\",:;.]+"), "<tmp>"),
    (re.compile(re.escape(sys.prefix)), "<environment>"),
    (re.compile(re.escape(str(_ROOT))), "<root>"),
    (re.compile(re.escape(tempfile.gettempdir()) + r"/[^\s'\",;:]+"), "<tmp>"),
    (re.compile(r"\b(process|pid) \d+"), r"\1 <number>"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), r"\1:<port>"),
    (re.compile(r"(?<![^\W_])(0x[0-9a-f]+|[0-9a-f]{8,})(?![^\W_])"), "<hex>"),
    (re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{6,}\b"), "<hex>"),
    (re.compile(r"(?<=, line )\d+"), "<line>"),
    (re.compile(r"(?<=got )[\[{].*[\]}]"), "<value>"),  # tests make them at random
    (re.compile(r"\b\d(\.\d+)?e[-+]\d\d\b"), "<number>"),
    (re.compile(r"its first \d+ documents"), "its first <number> documents"),
    (re.compile(r"(?<=it is not JSON: ).*"), "<reason>"),
)
_CLASS_OF_ERROR = re.compile(r"^\w+ Error: ")
"""What DuckDB puts before an error's text, and messages leave out."""
_CUTS = (80, 60, 40)
"""At how many characters messages cut long values off."""


class Messages:
    """The plug-in: records what is provoked in this process, and compares at the end of the session."""

    def __init__(self, update: bool) -> None:
        self.update = update
        self.lines: set[str] = set()

    def record(self, kind: str, message: str, fields: Mapping[str, Any]) -> None:
        """Remember one message as a line of the snapshot."""
        self.lines.add(line_of(kind, message, fields, _foreign_texts()))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker of pytest-xdist sends what it saw; the process that has the terminal compares."""
        config = session.config
        if hasattr(config, "workeroutput"):
            config.workeroutput[_KEY] = sorted(self.lines)
        elif self.update and session.testsfailed:
            print("\ntests/messages.txt is not written: tests failed.")
        elif self.update:
            SNAPSHOT.write_text("".join(f"{line}\n" for line in sorted(self.lines | _snapshot(config))))
        elif new := sorted(self.lines - set(SNAPSHOT.read_text().splitlines())):
            tests = [] if _is_whole(config) else config.args
            remedy = f"If they are as they should be: {' '.join(('python -m tests.messages --update', *tests))}"
            lines = "\n".join(("Messages that tests/messages.txt does not have:", *new, "", remedy))
            place = (str(SNAPSHOT.relative_to(_ROOT)), 0, "messages")
            report = pytest.TestReport(f"{place[0]}::messages", place, {}, "failed", lines, "call")
            config.hook.pytest_runtest_logreport(report=report)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist has ended."""
        self.lines.update(getattr(node, "workeroutput", {}).get(_KEY, ()))


def line_of(kind: str, message: str, fields: Mapping[str, Any], foreign: Iterable[str] = ()) -> str:
    """A message as a line of the snapshot: its kind and its sentence, names of fields in place of their values."""
    for text in foreign:
        message = message.replace(text, "<reason>")
    line = _normalize(message)
    values = {
        (part, name) for name, value in fields.items() for text in _texts(value) if (part := _part(text, message))
    }
    for text, name in sorted(values, key=lambda pair: (-len(pair[0]), pair)):
        value = text if line == message else _normalize(text)
        if value in line:
            line = re.sub(rf"(?<![\w<]){re.escape(value)}(?![\w>])", f"<{name}>", line)
    return f"{kind:{_MARGIN}}{line!r}"


def _normalize(text: str) -> str:
    """A text without what differs between two runs or machines."""
    for pattern, name in _VARYING:
        text = pattern.sub(name, text)
    return text


def _texts(value: Any) -> set[str]:
    """How a field's value may stand in a message: as it is, quoted, or its elements with commas."""
    if isinstance(value, tuple | list):
        lists = {join.join(map(form, value)) for join in (", ", " or ") for form in (str, repr)}
        return {text for text in lists if text}.union(*(_texts(item) for item in value))
    forms = {repr(value)}
    if not isinstance(value, str) or len(value) > 2:  # a letter by itself stands in many words
        forms.add(str(value))
    return {form for form in forms if form and form not in ("None", "True", "False")}


def _part(text: str, message: str) -> str:
    """What a message has of a text: all, the beginning where it is cut off, or nothing."""
    if text in message:
        return text
    place = message.find(text[: min(_CUTS)])
    if place < 0:
        return ""
    part = os.path.commonprefix((text, message[place:]))  # noqa: RUF071  # character by character, as messages are cut
    return part if len(part) in _CUTS or message.startswith("...", place + len(part)) else ""


def install(config: pytest.Config) -> None:
    """Record from now on, in runs of the default selection."""
    if config.getoption("markexpr") != _default_selection(config):
        return
    plugin = Messages(config.getoption("--update-messages"))
    config.pluginmanager.register(plugin, "messages")
    for cls in (UserError, Notice, ContractError):
        _record_all(cls, plugin)


def _record_all(cls: type[Any], plugin: Messages) -> None:
    construct = cls.__init__

    def recording(self: Any, kind: str, message: str, **fields: Any) -> None:
        construct(self, kind, message, **fields)
        plugin.record(_CONTRACT if cls is ContractError else kind, message, fields)

    cls.__init__ = recording


def _foreign_texts() -> list[str]:
    """What libraries say of the errors in hand, which changes with their versions; the system's own words do not."""
    texts, error = set(), sys.exc_info()[1]
    while error is not None:
        if not isinstance(error, UserError | ContractError | OSError):
            first = next(iter(str(error).strip().splitlines()), "")
            texts |= {str(error), first, " ".join(str(error).split()), _CLASS_OF_ERROR.sub("", first)}
        error = error.__cause__ or error.__context__
    return sorted((text.rstrip(".") for text in texts if " " in text), key=len, reverse=True)


def _default_selection(config: pytest.Config) -> str:
    words = config.getini("addopts")
    return str(words[words.index("-m") + 1])


def _snapshot(config: pytest.Config) -> set[str]:
    """What stays in the snapshot: all of it where only a part of the suite runs."""
    return set() if _is_whole(config) or not SNAPSHOT.exists() else set(SNAPSHOT.read_text().splitlines())


def _is_whole(config: pytest.Config) -> bool:
    return config.args_source is not pytest.Config.ArgsSource.ARGS and not config.getoption("keyword")


def main() -> int:
    """Run the suite, or the tests named, and write the snapshot."""
    parser = argparse.ArgumentParser(prog="python -m tests.messages", description="The snapshot of all messages.")
    parser.add_argument("--update", action="store_true", help="Write the snapshot, rather than compare with it.")
    parser.add_argument("tests", nargs="*", help="A part of the suite; the whole of it where none is named.")
    options = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", *options.tests]
    return subprocess.run([*command, *(["--update-messages"] if options.update else [])], cwd=_ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
