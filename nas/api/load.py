"""`nas.load`: the Rows of a study, of several, of files, or of all of these together."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from nas.environment.paths import DEFAULT_STORE
from nas.report.study import Study
from results.records import sources
from search_spaces.support.errors import Notice, UserError


def load(
    study: str | None = None, *, storage: str = DEFAULT_STORE, source: str | Path | Sequence[str | Path] = ()
) -> Study:
    """Open the Rows of a study, of several with commas, or of `all`; by default those of the newest search.

    `source` is a file of Rows (JSON Lines) or of columns (CSV, JSON, Parquet), a shipped table (`tables`: all), or
    several. It replaces the storage or, where a study is named, adds to it. Loads no torch. A Notice names each line
    that is no Row; the Study leaves it out.

    Raises:
        UserError: There is no such study or file.
    """
    result = _study(study, storage, source)
    for line in result.bad:
        warnings.warn(Notice("skipped", f"passed over, {line}", study=result.name, row=line), stacklevel=2)
    return result


def _study(study: str | None, storage: str, source: str | Path | Sequence[str | Path]) -> Study:

    named = [source] if isinstance(source, str | Path) else list(source)
    if named and study is None and storage != DEFAULT_STORE:
        message = "--from and --storage are two sources. Leave one out, or give --study too."
        raise UserError("conflict", message, option="--from", excludes="--storage")
    files = sources.union([sources.read(one) for one in named])
    if named and study is None:
        where = ",".join(map(str, named))
        return Study(where, where, files.rows, bad=files.bad, flat=files.flat)
    stored = _stored(study, storage)
    if not named:
        return stored
    both = sources.union([sources.Source(tuple(stored.rows()), bad=stored.bad), files])
    name = ",".join([stored.name, *map(str, named)])
    return Study(name, storage, both.rows, stored.config, both.bad, stored.reeval_identities, both.flat)


def _stored(study: str | None, storage: str) -> Study:
    from nas.store.store import Store
    from nas.store.study_names import named, no_study

    store = Store(storage)
    searched, known = store.searches(), store.studies()
    names = [*(name for name in searched if name not in known), *known]
    if not names:
        raise no_study(store.place)
    newest = [name for name in searched if name in known] or list(searched) or known  # those with rows first
    wanted = [newest[-1]] if study is None else named(study, names)
    stored = store.read(wanted)
    config = searched.get(wanted[0]) if len(wanted) == 1 else None
    reeval_identities = frozenset[str]().union(*map(store.confirming, wanted))
    return Study(",".join(wanted), storage, stored.rows, config, stored.bad, reeval_identities)
