"""Optuna's studies: how one is made, found and told. What Optuna keeps private is used here and nowhere else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import event
from sqlalchemy.engine import make_url

from nas.database import PATIENCE_S, clear_errors, unusable, write_ahead
from nas.locks import making_schema
from nas.search_config import SearchConfig
from nas.store import CONFIG
from results.row import Direction, Row
from search_spaces.errors import UserError

optuna.logging.set_verbosity(optuna.logging.ERROR)


def open_study(
    storage: optuna.storages.RDBStorage, name: str, config: SearchConfig, sampler: optuna.samplers.BaseSampler
) -> optuna.Study:
    """Make a study, or continue one that was made with the same.

    Raises:
        UserError: The study was made with others; the message names the first that differs.
    """
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        sampler=sampler,
        directions=["maximize" if direction == "max" else "minimize" for direction in config.objectives.values()],
        load_if_exists=True,
    )
    stored = study.user_attrs.get(CONFIG)
    if stored is None:
        study.set_user_attr(CONFIG, config.record())
        return study
    asked, had = config.record(), SearchConfig.from_record(stored).record()
    for key in asked:
        # Baselines are measured, not asked for: the stored ones stand.
        if key != "baselines" and asked[key] != had[key]:
            was, now = _plain(had[key]), _plain(asked[key])
            raise UserError(f"study {name!r} was made with {key} {was}, got {now}. Give another --study.")
    return study


def _plain(value: Any) -> str:
    return ",".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, dict) else repr(value)


def taken_up(study: optuna.Study, trial: FrozenTrial) -> optuna.Trial:
    """A trial that an earlier process began, to be gone on with."""
    return optuna.Trial(study, trial._trial_id)


def note(study: optuna.Study, trial: FrozenTrial, name: str, value: Any) -> None:
    """Set an attribute of a trial that an earlier process began."""
    study._storage.set_trial_user_attr(trial._trial_id, name, value)


def same_study(one: optuna.Study, other: optuna.Study) -> bool:
    """Whether two objects are of one study in one storage."""
    return one._storage is other._storage and one._study_id == other._study_id


def conclude(study: optuna.Study, number: int, row: Row, objectives: Mapping[str, Direction]) -> None:
    """Give Optuna the values of a trial whose Row is stored."""
    columns = row.columns()
    values = [columns[name] for name in objectives if columns.get(name) is not None]
    if row.status == "complete" and len(values) == len(study.directions):
        study.tell(number, values)
    else:
        pruned = row.status in ("pruned", "over-budget")
        study.tell(number, state=TrialState.PRUNED if pruned else TrialState.FAIL)


def open_storage(url: str) -> optuna.storages.RDBStorage:
    """Optuna's view of a store. Raises UserError where its schema is of another version."""
    sqlite = make_url(url).get_backend_name() == "sqlite"
    options: dict[str, Any] = {"connect_args": {"timeout": PATIENCE_S}} if sqlite else {"pool_pre_ping": True}
    with clear_errors(url):
        try:
            with making_schema(url):
                storage = optuna.storages.RDBStorage(url, engine_kwargs=options)
        except RuntimeError as error:
            raise unusable(url, error) from error
        if sqlite:
            event.listen(storage.engine, "connect", write_ahead)
            storage.engine.dispose()  # connections made before the listener have no write-ahead log
    return storage


@contextmanager
def clear_storage_errors(url: str) -> Iterator[None]:
    """Do as `nas.store.clear_errors` does, with what Optuna makes of a database's errors."""
    with clear_errors(url):
        try:
            yield
        except StorageInternalError as error:
            raise unusable(url, error) from error
