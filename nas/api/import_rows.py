"""`nas.import_rows`: rows that were made elsewhere, taken into a store."""

from collections.abc import Sequence
from pathlib import Path

from nas.engine.row_import import Imported, import_into, rows_in
from nas.environment.paths import DEFAULT_STORE
from nas.store.database import check_url
from nas.store.study_names import check_name


def import_rows(
    files: str | Path | Sequence[str | Path], *, study: str | None = None, storage: str = DEFAULT_STORE
) -> Imported:
    """Take the rows of FILES (JSON Lines) into a store: all of them, or none where a line is no row.

    They are asked for like any others, and what they say was trained is not trained again. Nothing in them is run.
    Rows that the study has are left as they are, so that a file may be imported twice.

    Raises:
        UserError: A file cannot be read or a line holds no row, there is none, or the study is a search's.
    """

    check_url(storage)
    paths = [Path(one) for one in ([files] if isinstance(files, str | Path) else files)]
    return import_into(storage, check_name(study or paths[0].name.partition(".")[0]), rows_in(paths))
