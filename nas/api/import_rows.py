"""`nas.import_rows`: import rows from files into a store."""

from collections.abc import Sequence
from pathlib import Path

from nas.engine.row_import import ImportCounts, import_into, read_rows
from nas.environment.paths import DEFAULT_STORE
from nas.store.database import check_url
from nas.store.study_names import check_name


def import_rows(
    files: str | Path | Sequence[str | Path], *, study: str | None = None, storage: str = DEFAULT_STORE
) -> ImportCounts:
    """Import the rows of FILES (JSON Lines) into a store: all of them or, if a line is no row, none.

    Imported rows are queried like any others, and their trainings are not repeated. None of their content is run.
    Importing a file twice adds nothing.

    Raises:
        UserError: A file that cannot be read, a line that is no row, no row at all, or the study of a search.
    """
    check_url(storage)
    paths = [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]
    return import_into(storage, check_name(study or paths[0].name.partition(".")[0]), read_rows(paths))
