"""What is installed, by name: topologies, spaces, tasks and samplers come through entry points, ours as anybody's."""

import inspect
import re
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from search_spaces.support.errors import Notice, UserError, fields_of, reason_of, unknown
from search_spaces.support.source_text import first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS = "nas-bench-wiring"
"""The distribution whose names nobody can take."""


@dataclass(frozen=True)
class Registry:
    """The entries of one entry-point group. Names are known without importing anything.

    Of several distributions that use one name, this project's own has it, else the first by its distribution's name:
    what is used never depends on the order in which things were installed. Each that is passed over is named in a
    Notice.

    Attributes:
        group: The entry-point group, "nas.tasks" for example.
        kind: What one entry is called in messages, "task" for example.
    """

    group: str
    kind: str

    @cached_property
    def _entries(self) -> "dict[str, EntryPoint]":
        from importlib.metadata import entry_points  # a tenth of the start of a command that asks for none

        entries: dict[str, EntryPoint] = {}
        for entry in sorted(entry_points(group=self.group), key=_precedence):
            first = entries.setdefault(entry.name, entry)
            if first.value != entry.value:
                message = (
                    f"{self.kind} {entry.name!r} of package {_owner(entry)} ({entry.value}) is passed over: "
                    f"{_owner(first)} has that name ({first.value}). Give it another one."
                )
                places = {"package": _owner(entry), "place": entry.value, "owner": _owner(first)}
                notice = Notice("skipped", message, option=self.kind, value=entry.name, **places)
                warnings.warn(notice, stacklevel=2)
        return entries

    def names(self) -> list[str]:
        """Every installed name, in alphabetical order."""
        return sorted(self._entries)

    def is_ours(self, name: str) -> bool:
        """Whether that installed name is this project's own."""
        return _owner(self._entries[name]) == OURS

    def place(self, name: str) -> tuple[str, str] | None:
        """The module and the name in it that an installed name stands for; None where it is not installed."""
        entry = self._entries.get(name)
        return (entry.module, entry.attr) if entry else None

    def description(self, name: str) -> str:
        """The first line of an installed entry's docstring: of its source, where that tells, and nothing is imported.

        Raises:
            UserError: It had to be imported, and that failed.
        """
        entry = self._entries[name]
        line = first_line(entry.module, entry.attr)
        return (inspect.getdoc(self.load(name)) or "").partition("\n")[0] if line is None else line

    def check(self, name: str) -> None:
        """Raise UserError where that name is not installed."""
        if name not in self._entries:
            raise unknown(self.kind, name, self.names())

    def load(self, name: str) -> Any:
        """Import one entry. Raises UserError where there is none, or where importing it fails, with file and line."""
        self.check(name)
        entry = self._entries[name]
        try:
            return entry.load()
        except UserError as error:
            message = f"{self.kind} {name!r} ({entry.value}): {error}"
            fields = {**error.fields, "plugin": name, "place": entry.value}
            raise UserError(error.kind, message, **fields) from error
        except (Exception, SystemExit) as error:  # a plug-in may fail in any way, and that is not ours to trace
            message = f"{self.kind} {name!r} ({entry.value}) could not be imported: {reason_of(error)}"
            fields = {"place": entry.value, **fields_of(error)}
            raise UserError("bad-plugin", message, option=self.kind, value=name, **fields) from error


def _precedence(entry: "EntryPoint") -> tuple[bool, str, str]:
    return _owner(entry) != OURS, _owner(entry), entry.value


def _owner(entry: "EntryPoint") -> str:
    """The distribution that an entry is from, spelt as package indexes do."""
    return "" if entry.dist is None else re.sub(r"[-_.]+", "-", entry.dist.name).lower()
