"""The store: one database in which every command writes its Rows, beside the searches that Optuna keeps there.

A SQLite file has one coordinator for each study; on a server there may be several: see `nas.store.leases`. Loads no
torch.
"""

import gc
import json
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError

from nas.environment.paths import RUNS
from nas.store.database import (
    check_file,
    file_identity,
    file_of,
    is_server,
    open_engine,
    parse_url,
    printable_url,
    translate_errors,
)
from nas.store.locks import schema_lock
from nas.store.retry import retry_on_disconnect
from nas.store.search_config import SearchConfig
from results.records.duplicates import deduplicate
from results.records.row import BadRow, Row
from search_spaces.support.errors import UserError

CONFIG = "settings"  # the attribute of Optuna's study that has a SearchConfig
REEVALUATES_FROM = "confirms_from"  # and that which has the number of the first trial that re-evaluates

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
    sql.Index("nas_rows_once", "study", "number", unique=True),
)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The Rows of studies.

    Attributes:
        rows: Each evaluation once, its last complete Row or else its last; a search's in the order of its trials.
        bad: What could not be read, a line each: where it is and why.
    """

    rows: tuple[Row, ...] = ()
    bad: tuple[str, ...] = field(default=())


class Store:
    """The Rows in a database. Rows are added and never changed; of one evaluation, the newest complete one counts.

    Attributes:
        url: The database.
        is_shared: Whether several coordinators may write to it at once.
        engine: What talks to it.

    Raises:
        UserError: The database cannot be used, or is not there or empty and is not to be made.
    """

    def __init__(self, url: str, *, make: bool = False) -> None:
        self.url = url
        db_url = parse_url(url)
        self.is_shared = is_server(db_url)
        if not self.is_shared:
            check_file(db_url, url, make)
        with translate_errors(url):
            self.engine = open_engine(db_url, reading=not make)
            if make and self.is_shared:
                self.engine.connect().close()  # of a wrong address or password it is told at once
        if make:
            retry_on_disconnect(self._make)()
        self._file_identity = file_identity(file_of(url))

    def close(self) -> None:
        """Let go of the database's connections: a SQLite file then holds everything itself, without a log beside it."""
        self.engine.dispose()

    @property
    def folder(self) -> Path:
        """The folder of saved networks and unfinished evaluations: beside a SQLite file, or `nas-runs`."""
        file = file_of(self.url)
        return RUNS if file is None else file.parent

    def network(self, identity: str) -> Path:
        """The folder of a trained network; it need not be there."""
        return self.folder / "networks" / identity

    def work_folder(self, identity: str) -> Path:
        """The folder of an evaluation under way."""
        return self.folder / "unfinished" / identity

    def clear(self, row: Row) -> None:
        """Remove the folder of an evaluation whose Row is stored; of a failed one another may go on from it."""
        if row.status in ("complete", "over-budget"):
            shutil.rmtree(self.work_folder(row.identity()), ignore_errors=True)

    def add(self, row: Row, study: str, number: int | None = None) -> Row:
        """Write a Row, and return the one that counts: of a trial the first, which may be another coordinator's.

        A complete Row is written in any case where the store has none of the same evaluation.

        Raises:
            UserError: It cannot be written, or the store's file was deleted, emptied or replaced meanwhile: SQLite
                would go on writing to what has no name any more.
        """
        self._check_file()
        with translate_errors(self.url):
            try:
                with self.engine.begin() as connection:
                    connection.execute(_ROWS.insert().values(**_values(row, study, number)))
            except IntegrityError:  # the trial has one
                assert number is not None
                if row.status == "complete" and self.find_complete(row.identity()) is None:
                    return self.add(row, study)
                return self.rows_by_number(study, [number]).get(number, row)
        return row

    def add_all(self, rows: Iterable[Row], study: str) -> None:
        """Write Rows that are of no trial: all of them or, where one cannot be written, none. Raises as `add`."""
        self._check_file()
        with translate_errors(self.url), self.engine.begin() as connection:
            for row in rows:
                connection.execute(_ROWS.insert().values(**_values(row, study, None)))

    def find_complete(self, identity: str) -> tuple[str, Row] | None:
        """The newest Row of a complete evaluation of that identity and the study that it is in, or None."""
        query = sql.select(_ROWS.c.study, _ROWS.c.row).where(_ROWS.c.identity == identity, _ROWS.c.status == "complete")
        with translate_errors(self.url), self.engine.connect() as connection:
            for study, text in connection.execute(query.order_by(_ROWS.c.id.desc())):
                try:
                    return study, Row.from_json(text)
                except BadRow:
                    continue
        return None

    def rows_by_number(self, study: str, numbers: Collection[int] | None = None) -> dict[int, Row]:
        """The Rows of a search by the numbers of their trials: of these numbers, or of all."""
        query = sql.select(_ROWS.c.number, _ROWS.c.row).where(_ROWS.c.study == study, _ROWS.c.number.is_not(None))
        if numbers is not None:
            query = query.where(_ROWS.c.number.in_(numbers))
        rows = {}
        with translate_errors(self.url), self.engine.connect() as connection:
            for number, text in connection.execute(query.order_by(_ROWS.c.id)):
                try:
                    rows[number] = Row.from_json(text)
                except BadRow:
                    continue
        return rows

    def studies_with(self, identity: str) -> set[str]:
        """The studies that hold a Row of an evaluation."""
        query = sql.select(_ROWS.c.study).where(_ROWS.c.identity == identity).distinct()
        with translate_errors(self.url), self.engine.connect() as connection:
            return {study for (study,) in connection.execute(query)}

    def read(self, studies: Iterable[str]) -> StoredRows:
        """The Rows of some studies; a record that is none is named, and the others are read."""
        rows, bad = [], []
        with _no_garbage_collection():
            for place, text, identity in chain.from_iterable(map(self._texts, studies)):
                try:
                    rows.append(Row.from_json(text, identity))
                except BadRow as error:
                    bad.append(f"{place}: {error}")
            return StoredRows(tuple(deduplicate(rows)), tuple(bad))

    def studies(self) -> list[str]:
        """The names of all studies that hold Rows, in the order of their newest ones."""
        with translate_errors(self.url), self.engine.connect() as connection:
            query = sql.select(_ROWS.c.study).group_by(_ROWS.c.study).order_by(sql.func.max(_ROWS.c.id))
            return [name for (name,) in connection.execute(query)] if self._has("nas_rows") else []

    def searches(self) -> dict[str, SearchConfig | None]:
        """Name of a study -> the configuration of its search, None if another version wrote it; the newest last."""
        configs: dict[str, SearchConfig | None] = {}
        with translate_errors(self.url), self.engine.connect() as connection:
            if self._has("study_user_attributes"):
                for name, text in connection.execute(_SEARCHES, {"config": CONFIG}):
                    configs[name] = None
                    with suppress(ValueError, TypeError):
                        configs[name] = SearchConfig.from_record(json.loads(text))
        return configs

    def reevaluations(self, study: str) -> frozenset[str]:
        """The identities of a search's re-evaluations: Rows whose seeds had no part in choosing their architecture."""
        with translate_errors(self.url), self.engine.connect() as connection:
            if not self._has("study_user_attributes"):
                return frozenset()
            values = {"key": REEVALUATES_FROM, "study": study}
            number = next((json.loads(text) for (text,) in connection.execute(_ATTRIBUTE, values)), None)
            if number is None:
                return frozenset()
            rows = sql.select(_ROWS.c.number, _ROWS.c.identity).where(_ROWS.c.study == study)
            sides: tuple[set[str], set[str]] = (set(), set())
            for place, identity in connection.execute(rows.where(_ROWS.c.number.is_not(None))):
                sides[place >= number].add(identity)
            # A paused training that goes on among re-evaluations is none of them.
            return frozenset(sides[True] - sides[False])

    @property
    def place(self) -> str:
        """The store's printable name: the file, or the URL without its password."""
        return printable_url(self.url)

    def _texts(self, study: str) -> Iterator[tuple[str, str, str]]:
        """The text of each row, with its place and its identity."""
        with translate_errors(self.url), self.engine.connect() as connection:
            if self._has("nas_rows"):
                query = sql.select(_ROWS.c.id, _ROWS.c.row, _ROWS.c.identity).where(_ROWS.c.study == study)
                query = query.order_by(_ROWS.c.number, _ROWS.c.id)  # of a search in the order of its trials
                for number, text, identity in connection.execute(query):
                    yield f"study {study!r}, row {number}", text, identity

    def _make(self) -> None:
        with translate_errors(self.url), schema_lock(self.url):
            _TABLES.create_all(self.engine)

    def _has(self, table: str) -> bool:
        return sql.inspect(self.engine).has_table(table)

    def _check_file(self) -> None:
        if file_identity(file_of(self.url)) != self._file_identity:
            message = (
                f"store {self.place} was deleted, emptied or replaced by another file while it was in use. Put it back,"
                f" or remove what is there; the same command then takes what is finished from {self.folder}/unfinished."
            )
            raise UserError("mismatch", message, storage=self.place)


def _values(row: Row, study: str, number: int | None) -> dict[str, str | int | None]:
    """A Row as a line of the table."""
    return {"study": study, "number": number, "identity": row.identity(), "status": row.status, "row": row.to_json()}


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Without Python's collector of cycles, which walks all rows read so far again and again, and finds none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_SEARCHES = sql.text(
    "SELECT study_name, value_json FROM study_user_attributes JOIN studies USING (study_id) "
    "WHERE key = :config ORDER BY study_id"
)

_ATTRIBUTE = sql.text(
    "SELECT value_json FROM study_user_attributes JOIN studies USING (study_id) "
    "WHERE key = :key AND study_name = :study"
)
