"""The store: one database in which every command writes its Rows, beside Optuna's studies.

A SQLite file has one coordinator for each study; a server may have several: see `nas.store.leases`. Loads no torch.
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
from nas.store.schema import CONFIG, FIRST_REEVALUATION, ROWS, create
from nas.store.search_config import SearchConfig
from results.records.duplicates import deduplicate
from results.records.row import BadRow, Row
from search_spaces.support.errors import UserError


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The Rows of some studies.

    Attributes:
        rows: One Row for each evaluation, its last complete one or else its last; in the order of a search's trials.
        bad: One line for each unreadable record: its location and the reason.
    """

    rows: tuple[Row, ...] = ()
    bad: tuple[str, ...] = field(default=())


class Store:
    """The Rows in a database. Rows are added and never changed; the newest complete one of an evaluation counts.

    Attributes:
        url: The database.
        is_shared: Whether several coordinators may write to it at once.
        engine: SQLAlchemy's engine of it.

    Raises:
        UserError: The database cannot be used, or it is missing or empty and `make` is False.
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
                self.engine.connect().close()  # reports a wrong address or password at once
        if make:
            retry_on_disconnect(self._create_tables)()
        self._file_identity = file_identity(file_of(url))

    def close(self) -> None:
        """Close the database's connections. A SQLite file then has no log beside it."""
        self.engine.dispose()

    @property
    def folder(self) -> Path:
        """The folder of saved networks and unfinished evaluations: beside a SQLite file, or `nas-runs`."""
        file = file_of(self.url)
        return RUNS if file is None else file.parent

    def network(self, identity: str) -> Path:
        """Return the folder of a trained network, which may not exist."""
        return self.folder / "networks" / identity

    def work_folder(self, identity: str) -> Path:
        """Return the folder of an unfinished evaluation."""
        return self.folder / "unfinished" / identity

    def remove_work_folder(self, row: Row) -> None:
        """Remove the folder of an evaluation whose Row is stored. A failed one keeps it, to be resumed."""
        if row.status in ("complete", "over-budget"):
            shutil.rmtree(self.work_folder(row.identity()), ignore_errors=True)

    def add(self, row: Row, study: str, number: int | None = None) -> Row:
        """Write a Row, and return the one that counts: a trial's first one, which may be another coordinator's.

        A complete Row is always written if the store has no complete one of the same evaluation.

        Raises:
            UserError: It cannot be written, or the store's file was deleted, emptied or replaced in the meantime:
                SQLite would write to a file without a name.
        """
        self._check_file()
        with translate_errors(self.url):
            try:
                with self.engine.begin() as connection:
                    connection.execute(ROWS.insert().values(**_values(row, study, number)))
            except IntegrityError:  # the trial already has a Row
                assert number is not None
                if row.status == "complete" and self.find_complete(row.identity()) is None:
                    return self.add(row, study)
                return self.rows_by_number(study, [number]).get(number, row)
        return row

    def add_all(self, rows: Iterable[Row], study: str) -> None:
        """Write Rows without trials: all of them, or none if one cannot be written. Raises as `add`."""
        self._check_file()
        with translate_errors(self.url), self.engine.begin() as connection:
            for row in rows:
                connection.execute(ROWS.insert().values(**_values(row, study, None)))

    def find_complete(self, identity: str) -> tuple[str, Row] | None:
        """Return the newest complete Row of an identity and its study, or None."""
        query = sql.select(ROWS.c.study, ROWS.c.row).where(ROWS.c.identity == identity, ROWS.c.status == "complete")
        with translate_errors(self.url), self.engine.connect() as connection:
            for study, text in connection.execute(query.order_by(ROWS.c.id.desc())):
                try:
                    return study, Row.from_json(text)
                except BadRow:
                    continue
        return None

    def rows_by_number(self, study: str, numbers: Collection[int] | None = None) -> dict[int, Row]:
        """Return the Rows of a search by trial number, of these numbers or of all."""
        query = sql.select(ROWS.c.number, ROWS.c.row).where(ROWS.c.study == study, ROWS.c.number.is_not(None))
        if numbers is not None:
            query = query.where(ROWS.c.number.in_(numbers))
        rows = {}
        with translate_errors(self.url), self.engine.connect() as connection:
            for number, text in connection.execute(query.order_by(ROWS.c.id)):
                try:
                    rows[number] = Row.from_json(text)
                except BadRow:
                    continue
        return rows

    def studies_with(self, identity: str) -> set[str]:
        """Return the studies that hold a Row of an evaluation."""
        query = sql.select(ROWS.c.study).where(ROWS.c.identity == identity).distinct()
        with translate_errors(self.url), self.engine.connect() as connection:
            return {study for (study,) in connection.execute(query)}

    def read(self, studies: Iterable[str]) -> StoredRows:
        """Read the Rows of some studies; report unreadable records and skip them."""
        rows, bad = [], []
        with _no_garbage_collection():
            for location, text, identity in chain.from_iterable(map(self._row_texts, studies)):
                try:
                    rows.append(Row.from_json(text, identity))
                except BadRow as error:
                    bad.append(f"{location}: {error}")
            return StoredRows(tuple(deduplicate(rows)), tuple(bad))

    def studies(self) -> list[str]:
        """Return the names of all studies with Rows, in the order of their newest ones."""
        with translate_errors(self.url), self.engine.connect() as connection:
            query = sql.select(ROWS.c.study).group_by(ROWS.c.study).order_by(sql.func.max(ROWS.c.id))
            return [name for (name,) in connection.execute(query)] if self._has("nas_rows") else []

    def searches(self) -> dict[str, SearchConfig | None]:
        """Return study -> configuration of its search, None if another version wrote it; the newest last."""
        configs: dict[str, SearchConfig | None] = {}
        with translate_errors(self.url), self.engine.connect() as connection:
            if self._has("study_user_attributes"):
                for name, text in connection.execute(_SEARCHES, {"config": CONFIG}):
                    configs[name] = None
                    with suppress(ValueError, TypeError):
                        configs[name] = SearchConfig.from_record(json.loads(text))
        return configs

    def check_no_search(self, study: str) -> None:
        """Raise UserError if a study is a search, to which no other rows are added."""
        if study in self.searches():
            message = f"study {study!r} is a search and takes no other rows. Give another --study."
            raise UserError("mismatch", message, option="--study", value=study)

    def reevaluations(self, study: str) -> frozenset[str]:
        """Return the identities of a search's re-evaluations: Rows of held-out seeds, which chose no architecture."""
        with translate_errors(self.url), self.engine.connect() as connection:
            if not self._has("study_user_attributes"):
                return frozenset()
            values = {"key": FIRST_REEVALUATION, "study": study}
            number = next((json.loads(text) for (text,) in connection.execute(_ATTRIBUTE, values)), None)
            if number is None:
                return frozenset()
            rows = sql.select(ROWS.c.number, ROWS.c.identity).where(ROWS.c.study == study)
            sides: tuple[set[str], set[str]] = (set(), set())
            for trial_number, identity in connection.execute(rows.where(ROWS.c.number.is_not(None))):
                sides[trial_number >= number].add(identity)
            # A paused training that is promoted among re-evaluations does not count as one.
            return frozenset(sides[True] - sides[False])

    @property
    def printable_name(self) -> str:
        """The store's printable name: its file, or its URL without the password."""
        return printable_url(self.url)

    def _row_texts(self, study: str) -> Iterator[tuple[str, str, str]]:
        """Yield the text of each row, with its location and its identity."""
        with translate_errors(self.url), self.engine.connect() as connection:
            if self._has("nas_rows"):
                query = sql.select(ROWS.c.id, ROWS.c.row, ROWS.c.identity).where(ROWS.c.study == study)
                query = query.order_by(ROWS.c.number, ROWS.c.id)  # in the order of a search's trials
                for number, text, identity in connection.execute(query):
                    yield f"study {study!r}, row {number}", text, identity

    def _create_tables(self) -> None:
        with translate_errors(self.url), schema_lock(self.url):
            create(self.engine, ROWS)

    def _has(self, table: str) -> bool:
        return sql.inspect(self.engine).has_table(table)

    def _check_file(self) -> None:
        if file_identity(file_of(self.url)) != self._file_identity:
            message = (
                f"store {self.printable_name} was deleted, emptied or replaced by another file while it was in use. "
                f"Restore it, or remove the file; the same command then reuses finished work in "
                f"{self.folder}/unfinished."
            )
            raise UserError("mismatch", message, storage=self.printable_name)


def _values(row: Row, study: str, number: int | None) -> dict[str, str | int | None]:
    """Return a Row as the values of a table row."""
    return {"study": study, "number": number, "identity": row.identity(), "status": row.status, "row": row.to_json()}


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable Python's garbage collector, which would walk all rows again and again without finding cycles."""
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
