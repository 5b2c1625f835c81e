"""What is installed, by name: topologies, spaces and tasks come through entry points, ours like a third party's."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from search_spaces.errors import Notice, UserError, unknown


@dataclass(frozen=True)
class Registry:
    """The entries of one entry-point group. Names are known without importing anything.

    Attributes:
        group: The entry-point group, "nas.tasks" for example.
        kind: What one entry is called in messages, "task" for example.
    """

    group: str
    kind: str

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        entries: dict[str, EntryPoint] = {}
        for entry in entry_points(group=self.group):
            first = entries.setdefault(entry.name, entry)
            if first.value != entry.value:
                warnings.warn(
                    f"{self.kind} {entry.name!r} is {first.value} and {entry.value}; the first is used.", Notice, 2
                )
        return entries

    def names(self) -> list[str]:
        """Every installed name, in alphabetical order."""
        return sorted(self._entries)

    def load(self, name: str) -> Any:
        """Import one entry. Raises UserError where there is none, or where importing it fails."""
        if name not in self._entries:
            raise unknown(self.kind, name, self.names())
        entry = self._entries[name]
        try:
            return entry.load()
        except Exception as error:  # a plug-in may fail in any way, and that is not ours to trace
            reason = f"{type(error).__name__}: {error}"
            raise UserError(f"{self.kind} {name!r} ({entry.value}) could not be imported: {reason}") from error
