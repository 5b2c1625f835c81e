"""Registries of entry points: topologies, spaces, tasks and samplers by name."""

import inspect
import re
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from search_spaces.support.errors import Notice, UserError, cause_fields, reason_of, unknown_name_error
from search_spaces.support.source_text import first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS = "nas-bench-wiring"
"""The distribution whose names no other can take."""


@dataclass(frozen=True)
class Registry:
    """The entries of one entry-point group. Names are known without importing anything.

    If several distributions use one name, this project's own entry wins, else the first by distribution name. So the
    choice does not depend on the order of installation. A Notice names each entry that is skipped.

    Attributes:
        group: The entry-point group, such as "nas.tasks".
        kind: The noun for an entry in messages, such as "task".
        hint: How to name one of the user's own, for the error of an unknown name.
    """

    group: str
    kind: str
    hint: str = "One of your own must be installed: pip install -e FOLDER."

    @cached_property
    def _entries(self) -> "dict[str, EntryPoint]":
        from importlib.metadata import entry_points  # a tenth of the start of a command that needs none

        entries: dict[str, EntryPoint] = {}
        for entry in sorted(entry_points(group=self.group), key=_precedence):
            first = entries.setdefault(entry.name, entry)
            if first.value != entry.value:
                message = (
                    f"{self.kind} {entry.name!r} of package {_owner(entry)} ({entry.value}) is skipped: "
                    f"{_owner(first)} has the same name ({first.value}). Rename it."
                )
                places = {"package": _owner(entry), "place": entry.value, "owner": _owner(first)}
                notice = Notice("skipped", message, option=self.kind, value=entry.name, **places)
                warnings.warn(notice, stacklevel=2)
        return entries

    def names(self) -> list[str]:
        """Return all installed names, sorted."""
        return sorted(self._entries)

    def is_builtin(self, name: str) -> bool:
        """Return whether an installed name belongs to this project."""
        return _owner(self._entries[name]) == OURS

    def location(self, name: str) -> tuple[str, str] | None:
        """Return the module and attribute of an installed name; None if it is not installed."""
        entry = self._entries.get(name)
        return (entry.module, entry.attr) if entry else None

    def description(self, name: str) -> str:
        """Return the first line of an entry's docstring, read from the source without an import if possible.

        Raises:
            UserError: The entry had to be imported, and that failed.
        """
        entry = self._entries[name]
        line = first_line(entry.module, entry.attr)
        return (inspect.getdoc(self.load(name)) or "").partition("\n")[0] if line is None else line

    def check(self, name: str) -> None:
        """Raise UserError if the name is not installed."""
        if name not in self._entries:
            raise unknown_name_error(self.kind, name, self.names(), remedy=self.hint)

    def load(self, name: str) -> Any:
        """Import one entry. Raises UserError if there is none or its import fails, with file and line."""
        self.check(name)
        entry = self._entries[name]
        try:
            return entry.load()
        except UserError as error:
            message = f"{self.kind} {name!r} ({entry.value}): {error}"
            fields = {**error.fields, "plugin": name, "place": entry.value}
            raise UserError(error.kind, message, **fields) from error
        except (Exception, SystemExit) as error:  # plug-ins may fail in any way
            message = f"{self.kind} {name!r} ({entry.value}) could not be imported: {reason_of(error)}"
            fields = {"place": entry.value, **cause_fields(error)}
            raise UserError("bad-plugin", message, option=self.kind, value=name, **fields) from error


def _precedence(entry: "EntryPoint") -> tuple[bool, str, str]:
    return _owner(entry) != OURS, _owner(entry), entry.value


def _owner(entry: "EntryPoint") -> str:
    """Return the distribution of an entry, with its name normalized as package indexes do."""
    return "" if entry.dist is None else re.sub(r"[-_.]+", "-", entry.dist.name).lower()
