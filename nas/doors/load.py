"""`nas.load`: the Rows of a study, of several, or of a file."""

from pathlib import Path
from typing import TYPE_CHECKING

from nas.places import DEFAULT_STORE

if TYPE_CHECKING:
    from nas.study import Study


def load(study: str | None = None, *, storage: str = DEFAULT_STORE, source: str | Path | None = None) -> "Study":
    """Open the Rows of a study, of several with commas, or of `all`; without a name those of the newest search
    that has any.

    `source` is a file of Rows (JSON Lines) in place of a storage. Loads no torch.

    Raises:
        UserError: There is no such study or file.
    """
    from nas.storage.names import named
    from nas.storage.store import Store
    from nas.study import Study
    from search_spaces.errors import UserError

    if source is not None:
        if study is not None:
            raise UserError(f"a file of rows holds no studies, got study {study!r} of {source}. Leave one of them out.")
        from results import lines

        rows, bad = lines.read(Path(source))
        once = {row.identity(): row for row in rows}  # of an evaluation, the last that was written
        return Study(str(source), str(source), list(once.values()), bad=[f"{source}, {line}" for line in bad])
    store = Store(storage)
    searched, known = store.searches(), store.studies()
    names = [*(name for name in searched if name not in known), *known]
    if not names:
        raise UserError(f"there is no study in {store.place}. Make one with `nas search`, or give --storage.")
    newest = [name for name in searched if name in known] or list(searched) or known  # those with rows first
    wanted = [newest[-1]] if study is None else named(study, names)
    stored = store.read(wanted)
    config = searched.get(wanted[0]) if len(wanted) == 1 else None
    confirming = frozenset[str]().union(*map(store.confirming, wanted))
    return Study(",".join(wanted), storage, stored.rows, config, stored.bad, confirming)
