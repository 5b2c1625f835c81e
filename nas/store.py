"""The store: one database in which every command writes its Rows, beside the searches that Optuna keeps there.

A search's coordinator is the only writer of its study; a lock beside a SQLite file sees to it. Loads no torch.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy.engine import make_url

from nas.database import check_file, clear_errors, open_engine, parsed_url, shown_url
from nas.locks import making_schema
from nas.places import RUNS
from nas.search_config import SearchConfig
from results.row import BadRow, Row
from search_spaces.errors import UserError, unknown

CONFIG = "settings"  # the attribute of Optuna's study that has a SearchConfig

_TABLES = sql.MetaData()
_ROWS = sql.Table(
    "nas_rows",
    _TABLES,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("study", sql.String(255), index=True, nullable=False),
    sql.Column("number", sql.Integer),  # of the trial, in a search
    sql.Column("identity", sql.String(16), index=True, nullable=False),
    sql.Column("status", sql.String(16), nullable=False),
    sql.Column("row", sql.Text, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows as they were read.

    Attributes:
        rows: Each evaluation once: its last complete Row, else its last. A search's are in the order of its trials.
        bad: What could not be read, a line each: where it is and why.
    """

    rows: tuple[Row, ...] = ()
    bad: tuple[str, ...] = field(default=())


class Store:
    """The Rows in a database. Rows are added and never changed; of one evaluation, the newest complete one counts.

    Raises:
        UserError: The database cannot be used, or is not there and is not to be made.
    """

    def __init__(self, url: str, *, make: bool = False) -> None:
        self.url = url
        parsed = parsed_url(url)
        if parsed.get_backend_name() == "sqlite":
            check_file(parsed, url, make)
        with clear_errors(url):
            self.engine = open_engine(parsed)
            if make:
                with making_schema(url):
                    _TABLES.create_all(self.engine)

    @property
    def folder(self) -> Path:
        """Where trained networks and unfinished evaluations are kept: beside a SQLite file, or in `nas-runs`."""
        parsed = make_url(self.url)
        return Path(str(parsed.database)).parent if parsed.get_backend_name() == "sqlite" else RUNS

    def network(self, identity: str) -> Path:
        """The folder of a trained network; it need not be there."""
        return self.folder / "networks" / identity

    def unfinished(self, identity: str) -> Path:
        """The folder of an evaluation under way."""
        return self.folder / "unfinished" / identity

    def add(self, row: Row, study: str, number: int | None = None) -> None:
        """Write a Row."""
        line = {"study": study, "number": number, "identity": row.identity(), "status": row.status}
        with clear_errors(self.url), self.engine.begin() as connection:
            connection.execute(_ROWS.insert().values(**line, row=row.to_json()))

    def known(self, identity: str) -> tuple[str, Row] | None:
        """The newest Row of a complete evaluation of that identity and the study that it is in, or None."""
        wanted = sql.select(_ROWS.c.study, _ROWS.c.row).where(
            _ROWS.c.identity == identity, _ROWS.c.status == "complete"
        )
        with clear_errors(self.url), self.engine.connect() as connection:
            for study, text in connection.execute(wanted.order_by(_ROWS.c.id.desc())):
                try:
                    return study, Row.from_json(text)
                except BadRow:
                    continue
        return None

    def numbered(self, study: str) -> dict[int, Row]:
        """The Rows of a search by the numbers of their trials."""
        wanted = sql.select(_ROWS.c.number, _ROWS.c.row).where(_ROWS.c.study == study, _ROWS.c.number.is_not(None))
        rows = {}
        with clear_errors(self.url), self.engine.connect() as connection:
            for number, text in connection.execute(wanted.order_by(_ROWS.c.id)):
                try:
                    rows[number] = Row.from_json(text)
                except BadRow:
                    continue
        return rows

    def holders(self, identity: str) -> set[str]:
        """The studies that hold a Row of an evaluation."""
        wanted = sql.select(_ROWS.c.study).where(_ROWS.c.identity == identity).distinct()
        with clear_errors(self.url), self.engine.connect() as connection:
            return {study for (study,) in connection.execute(wanted)}

    def read(self, studies: Iterable[str]) -> Stored:
        """The Rows of some studies; a record that is none is named, and the others are read."""
        rows: dict[str, Row] = {}
        bad = []
        for study in studies:
            for place, text in self._texts(study):
                try:
                    row = Row.from_json(text)
                except BadRow as error:
                    bad.append(f"{place}: {error}")
                    continue
                earlier = rows.get(row.identity())
                if earlier is None or earlier.status != "complete" or row.status == "complete":
                    rows.pop(row.identity(), None)
                    rows[row.identity()] = row
        return Stored(tuple(rows.values()), tuple(bad))

    def studies(self) -> list[str]:
        """The names of all studies that hold Rows, in the order of their newest ones."""
        with clear_errors(self.url), self.engine.connect() as connection:
            old = [name for name, _ in connection.execute(_OLD_COUNTS)] if self._has("trial_user_attributes") else []
            wanted = sql.select(_ROWS.c.study).group_by(_ROWS.c.study).order_by(sql.func.max(_ROWS.c.id))
            new = [name for (name,) in connection.execute(wanted)] if self._has("nas_rows") else []
        return [name for name in old if name not in new] + new

    def searches(self) -> dict[str, SearchConfig]:
        """What every search is about, by the name of its study, the newest last."""
        configs = {}
        with clear_errors(self.url), self.engine.connect() as connection:
            if self._has("study_user_attributes"):
                for name, text in connection.execute(_SEARCHES, {"config": CONFIG}):
                    with suppress(ValueError, TypeError):  # one that cannot be read is no search of ours
                        configs[name] = SearchConfig.from_record(json.loads(text))
        return configs

    @property
    def place(self) -> str:
        """What people call it: the file, or the URL without its password."""
        return shown_url(self.url)

    def _texts(self, study: str) -> Iterator[tuple[str, str]]:
        """What rows were written as, each with where it is."""
        with clear_errors(self.url), self.engine.connect() as connection:
            if self._has("trial_user_attributes"):
                for number, text in connection.execute(_OLD_ROWS, {"study": study}):
                    yield f"study {study!r}, trial {number}", _unwrapped(text)
            if self._has("nas_rows"):
                wanted = sql.select(_ROWS.c.id, _ROWS.c.row).where(_ROWS.c.study == study)
                wanted = wanted.order_by(_ROWS.c.number, _ROWS.c.id)  # of a search in the order of its trials
                for number, text in connection.execute(wanted):
                    yield f"study {study!r}, row {number}", text

    def _has(self, table: str) -> bool:
        return sql.inspect(self.engine).has_table(table)


_SEARCHES = sql.text(
    "SELECT study_name, value_json FROM study_user_attributes JOIN studies USING (study_id) "
    "WHERE key = :config ORDER BY study_id"
)

# Rows of version 1 were attributes of Optuna's trials.
_OLD_ROWS = sql.text(
    "SELECT trials.number, value_json FROM trial_user_attributes JOIN trials USING (trial_id) JOIN studies "
    "USING (study_id) WHERE key = 'row' AND study_name = :study ORDER BY trials.number"
)
_OLD_COUNTS = sql.text(
    "SELECT study_name, COUNT(*) FROM trial_user_attributes JOIN trials USING (trial_id) JOIN studies "
    "USING (study_id) WHERE key = 'row' GROUP BY study_name ORDER BY MAX(trial_id)"
)


def _unwrapped(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text


def check_name(study: str) -> str:
    """The name, where a study can have it. Raises UserError."""
    if study != study.strip() or not study or study == "all" or "," in study:
        raise UserError(f"a study's name has no commas, no blanks at its ends, and is not 'all', got {study!r}.")
    return study


def named(wanted: str, known: list[str]) -> list[str]:
    """The studies that "all" or "A,B" means. Raises UserError for one that is not there."""
    names = known if wanted == "all" else [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names or [wanted]:
        if name not in known:
            raise unknown("study", name, known)
    return names
