"""`nas.load`: open the Rows of studies, of files, or of both together."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from nas.environment.paths import DEFAULT_STORE
from nas.report.study import Study
from nas.store.study_names import select_studies
from results.records import sources
from search_spaces.support.errors import Notice, UserError


def load(
    study: str | None = None, *, storage: str = DEFAULT_STORE, source: str | Path | Sequence[str | Path] = ()
) -> Study:
    """Open the Rows of a study, of several with commas, or of `all`; by default those of the newest search.

    `source` is a file of Rows (JSON Lines) or of columns (CSV, JSON, Parquet), a shipped table (`tables`: all), or a
    list of these. It replaces the storage or, with a study, adds to it. Loads no torch. A Notice names each line that
    is no Row; the Study leaves it out.

    Raises:
        UserError: There is no such study or file.
    """
    result = _study(study, storage, source)
    for line in result.unreadable:
        warnings.warn(Notice("skipped", f"skipped {line}", study=result.name, row=line), stacklevel=2)
    return result


def _study(study: str | None, storage: str, source: str | Path | Sequence[str | Path]) -> Study:
    paths = [source] if isinstance(source, str | Path) else list(source)
    if paths and study is None and storage != DEFAULT_STORE:
        message = "--from replaces --storage. Leave one out, or give --study to read both."
        raise UserError("conflict", message, option="--from", excludes="--storage")
    files = sources.union([sources.read(entry) for entry in paths])
    if paths and study is None:
        where = ",".join(map(str, paths))
        return Study(where, where, files.rows, unreadable=files.bad, column_tables=files.flat)
    base = _study_of_store(study, storage)
    if not paths:
        return base
    union = sources.union([sources.Source(tuple(base.rows()), bad=base.unreadable), files])
    name = ",".join([base.name, *map(str, paths)])
    return Study(name, storage, union.rows, base.config, union.bad, base.reeval_identities, union.flat)


def _study_of_store(study: str | None, storage: str) -> Study:
    from nas.store.store import Store
    from nas.store.study_names import missing_study_error

    store = Store(storage)
    searches, row_studies = store.searches(), store.studies()
    names = [*(name for name in searches if name not in row_studies), *row_studies]
    if not names:
        raise missing_study_error(store.printable_name)
    with_rows = [name for name in searches if name in row_studies]
    newest = with_rows or list(searches) or row_studies
    selection = [newest[-1]] if study is None else select_studies(study, names)
    source = store.read(selection)
    config = searches.get(selection[0]) if len(selection) == 1 else None
    reeval_identities = frozenset[str]().union(*map(store.reevaluations, selection))
    return Study(",".join(selection), storage, source.rows, config, source.bad, reeval_identities)
