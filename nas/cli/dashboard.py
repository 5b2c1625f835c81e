"""`nas dashboard`: Optuna's dashboard for the searches of a store."""

import errno
import warnings
from typing import Any

import optuna
from optuna.storages import InMemoryStorage

from nas.environment.paths import DEFAULT_STORE
from nas.store.optuna_study import clear_storage_errors, storage_connection
from nas.store.store import Store
from results.records.columns import COUNT_COLUMNS
from results.records.row import Row
from search_spaces.support.errors import Kind, UserError

_MAX_PORT = 65535


def copy_searches(storage: str = DEFAULT_STORE) -> InMemoryStorage:
    """Copy the searches of a store, with names of objectives, costs and test metrics for Optuna's dashboard.

    Raises:
        UserError: There is no search in the store.
    """
    store, copy = Store(storage), InMemoryStorage()
    searches = store.searches()
    if not searches:
        message = f"{store.printable_name} has no search. Run `nas search`, or give another --storage."
        raise UserError("missing-rows", message, option="--storage", storage=store.printable_name)
    with clear_storage_errors(storage), storage_connection(storage) as source:
        for name, config in searches.items():
            study, rows = optuna.load_study(study_name=name, storage=source), store.rows_by_number(name)
            twin = optuna.create_study(study_name=name, storage=copy, directions=study.directions)
            if config is not None:
                with warnings.catch_warnings(action="ignore", category=optuna.exceptions.ExperimentalWarning):
                    twin.set_metric_names([*config.objectives])
            for trial in study.get_trials():
                if trial.number in rows:
                    trial.user_attrs.update(_attributes(rows[trial.number]))
                twin.add_trial(trial)
    return copy


def _attributes(row: Row) -> dict[str, Any]:
    """Return the attributes of a Row that are shown with its trial."""
    test_metrics = {f"test_{name}": value for name, value in row.test.items()}
    counts = {name: getattr(row.costs, name) for name in COUNT_COLUMNS}
    labels = {"key": row.architecture.key, "topology": row.architecture.topology, "error": row.error}
    attributes = {**labels, **row.metrics, **test_metrics, **counts, **row.extra_metrics}
    return {name: value for name, value in attributes.items() if value is not None}


def serve(copy: InMemoryStorage, port: int = 8080) -> None:
    """Serve a copy on this machine only, until Ctrl-C."""
    if not 1 <= port <= _MAX_PORT:
        message = f"--port must be from 1 to {_MAX_PORT}, got {port}."
        raise UserError("out-of-range", message, option="--port", value=port, least=1, most=_MAX_PORT)
    try:
        from optuna_dashboard import run_server
    except ImportError as error:
        install = 'pip install ".[dashboard]"'
        message = f"`nas dashboard` needs the package {error.name}: {install}"
        raise UserError("needs-extra", message, extra="dashboard", package=error.name) from error
    try:
        run_server(copy, host="localhost", port=port)  # prints its address
    except OSError as error:
        message = f"port {port} cannot be used: {error.strerror}. Give another --port."
        kind: Kind = "in-use" if error.errno == errno.EADDRINUSE else "unavailable"
        raise UserError(kind, message, option="--port", value=port) from error
