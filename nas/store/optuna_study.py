"""Optuna's studies and trials. This is the only module that uses private names of Optuna."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import optuna
from optuna.distributions import BaseDistribution as Axis
from optuna.distributions import CategoricalDistribution, check_distribution_compatibility, distribution_to_json
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.storages._rdb.models import TrialParamModel
from optuna.storages._rdb.storage import _create_scoped_session
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import event
from sqlalchemy.engine import make_url

from nas.store.database import (
    LOCK_TIMEOUT_S,
    enable_write_ahead_log,
    is_server,
    psycopg_url,
    store_error,
    translate_errors,
)
from nas.store.locks import schema_lock, study_lock
from nas.store.retry import retry_on_disconnect
from nas.store.schema import CONFIG, FIRST_REEVALUATION
from nas.store.search_config import SearchConfig
from results.records.row import Direction, Row
from search_spaces.support.errors import UserError

ERRORS = "errors"  # attribute of a trial: the standard errors of its values
_SEED = "seed"  # attribute of a trial: its seed, if its candidate had earlier trials
_CONTINUES = "continues"  # attribute of a trial: the number of the trial whose training it continues
_RUNG_VALUES = "reports"  # attribute of a trial: its objectives at each rung, see `nas.samplers.early_stopping`
_LENGTH = "length"  # attribute of a study: the steps of a whole training

optuna.logging.set_verbosity(optuna.logging.ERROR)


def open_study(
    storage: optuna.storages.RDBStorage, name: str, config: SearchConfig, sampler: optuna.samplers.BaseSampler
) -> optuna.Study:
    """Create a study, or load one with the same configuration.

    Raises:
        UserError: The study has another configuration (the message names the first difference) or another origin.
    """
    with study_lock(storage.engine, name):
        return _create_or_load(storage, name, config, sampler)


def _create_or_load(
    storage: optuna.storages.RDBStorage, name: str, config: SearchConfig, sampler: optuna.samplers.BaseSampler
) -> optuna.Study:
    directions_of = {"max": StudyDirection.MAXIMIZE, "min": StudyDirection.MINIMIZE}
    directions = [directions_of[direction] for direction in config.objectives.values()]
    _refuse_foreign_study(storage, name, directions)
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        sampler=sampler,
        directions=directions,
        load_if_exists=True,
    )
    stored_record = study.user_attrs.get(CONFIG)
    if stored_record is None:
        study.set_user_attr(CONFIG, config.record())
        return study
    new_record, old_record = config.record(), SearchConfig.from_record(stored_record).record()
    for key, new in new_record.items():
        old = old_record[key]
        # Baselines are measured and not part of the request: the stored ones are kept.
        if key != "baselines" and new != old:
            missing, extra = (_values_beyond(old, new), _values_beyond(new, old)) if key == "axes" else ({}, {})
            if missing or extra:  # show only the values that differ
                old, new = missing, extra
            difference = f"{key} {_text(old)}, got {_text(new)}"
            if key == "code":
                difference = f"another text of {config.task}, or of a module that it imports"
            remedy = "Install what brought them, or give" if missing else "Give"
            message = f"study {name!r} was created with {difference}. {remedy} another --study."
            raise UserError("mismatch", message, option=key, value=new, expected=old, study=name)
    return study


def _refuse_foreign_study(storage: optuna.storages.RDBStorage, name: str, directions: list[StudyDirection]) -> None:
    """Raise UserError if another program made a study of that name.

    A study without trials and attributes is accepted: it is left by a search that was killed at its start.
    """
    if name not in optuna.get_all_study_names(storage):
        return
    study = optuna.load_study(study_name=name, storage=storage)
    differs = study.directions != directions
    if CONFIG not in study.user_attrs and (differs or study.user_attrs or study.get_trials(deepcopy=False)):
        message = f"study {name!r} was not created by `nas search`. Give another --study."
        raise UserError("mismatch", message, option="--study", value=name)


def _values_beyond(axes: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values on these axes that others lack."""
    beyond = {name: [value for value in values if value not in others.get(name, ())] for name, values in axes.items()}
    return {name: values for name, values in beyond.items() if values}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={item}" for name, item in value.items()) or "none"
    return repr(value)


def trials_of(study: optuna.Study) -> list[FrozenTrial]:
    """Return the study's trials by number; under the study's lock they are read once."""
    return study._get_trials(deepcopy=False, use_cache=True)


def is_under_way(study: optuna.Study, trial: FrozenTrial) -> bool:
    """Return whether a trial that was running when it was read is still running."""
    return study._storage.get_trial(trial._trial_id).state == TrialState.RUNNING


def new_trial(study: optuna.Study, paused_trial: FrozenTrial | None = None) -> FrozenTrial:
    """Return a new running trial, without parameters or to continue the training of a paused trial."""
    cache: Any = study._storage
    number = cache.get_trial_number_from_id(cache.create_new_trial(study._study_id, _continuation(paused_trial)))
    trial: FrozenTrial = cache._studies[study._study_id].trials[number]
    return trial


def _continuation(paused_trial: FrozenTrial | None) -> FrozenTrial | None:
    if paused_trial is None:
        return None
    seed = seed_of(paused_trial)
    attributes = {_CONTINUES: root_trial_number(paused_trial), **({} if seed is None else {_SEED: seed})}
    return optuna.trial.create_trial(
        state=TrialState.RUNNING,
        params=paused_trial.params,
        distributions=paused_trial.distributions,
        user_attrs=attributes,
    )


def record_params(study: optuna.Study, trial: FrozenTrial, params: Mapping[str, Any], axes: Mapping[str, Axis]) -> None:
    """Record a trial's missing parameters in one transaction; `suggest` would take one for each.

    Raises:
        UserError: The study has other choices, as when topologies were installed or removed since.
    """
    cache: Any = study._storage
    distributions = cache._studies[study._study_id].param_distribution
    with _create_scoped_session(cache._backend.scoped_session) as session:
        for name in params.keys() - trial.params.keys():
            axis, value = axes[name], axes[name].to_internal_repr(params[name])
            try:
                if name in distributions:
                    check_distribution_compatibility(distributions[name], axis)
                    distribution_json = distribution_to_json(axis)
                    session.add(
                        TrialParamModel(
                            trial_id=trial._trial_id,
                            param_name=name,
                            param_value=value,
                            distribution_json=distribution_json,
                        )
                    )
                else:  # this process has not yet read the study's first trials
                    cache._backend._set_trial_param_without_commit(session, trial._trial_id, name, value, axis)
            except ValueError as error:
                raise changed_choices_error(name, axis) from error
    distributions.update({name: axes[name] for name in params})


def changed_choices_error(name: str, axis: Axis) -> UserError:
    """Return the error for an axis whose choices differ from those of the study's first trial, which Optuna refuses."""
    value = tuple(axis.choices) if isinstance(axis, CategoricalDistribution) else axis
    choices = ", ".join(map(str, value)) if isinstance(value, tuple) else value
    message = f"the study was created with other values of axis {name!r} than {choices}. Give another --study."
    return UserError("mismatch", message, option=name, value=value)


@contextmanager
def proposal_lock(study: optuna.Study) -> Iterator[None]:
    """Make this the only coordinator that proposes in a study. See `nas.store.locks.study_lock`."""
    with study_lock(study._storage._backend.engine, study.study_name):  # type: ignore[attr-defined]  # Optuna's cache
        study._thread_local.cached_all_trials = None  # as Optuna does before it creates a trial
        yield


def first_reevaluation(study: optuna.Study) -> int | None:
    """Return the number of the first trial that re-evaluates; None if there is none yet."""
    number: int | None = study._storage.get_study_user_attrs(study._study_id).get(FIRST_REEVALUATION)
    return number


def set_first_reevaluation(study: optuna.Study, number: int | None) -> None:
    """Make trials from this number on re-evaluate candidates; None for no trial."""
    study._storage.set_study_user_attr(study._study_id, FIRST_REEVALUATION, number)


def seed_of(trial: FrozenTrial) -> int | None:
    """Return the seed of a trial whose candidate had earlier trials; None if it has the study's seed."""
    seed: int | None = trial.user_attrs.get(_SEED)
    return seed


def set_trial_seed(study: optuna.Study, trial: FrozenTrial, seed: int) -> None:
    """Record the seed of a trial whose candidate had earlier trials."""
    study._storage.set_trial_user_attr(trial._trial_id, _SEED, seed)


def root_trial_number(trial: FrozenTrial) -> int:
    """Return the number of the trial that started its training: its own, or that of the trial it continues."""
    number: int = trial.user_attrs.get(_CONTINUES, trial.number)
    return number


def started_trials(study: optuna.Study) -> list[int]:
    """Return the numbers of a study's trials, except those that continue another's training."""
    return [trial.number for trial in trials_of(study) if _CONTINUES not in trial.user_attrs]


def rung_values_of(trial: FrozenTrial) -> list[list[float]]:
    """Return a trial's objectives at each rung so far."""
    rung_values: list[list[float]] = trial.user_attrs.get(_RUNG_VALUES, [])
    return rung_values


def training_length(study: optuna.Study) -> int | None:
    """Return the steps of a whole training; None if not known yet."""
    length: int | None = study._storage.get_study_user_attrs(study._study_id).get(_LENGTH)
    return length


def set_training_length(study: optuna.Study, steps: int) -> None:
    """Record the steps of a whole training."""
    study._storage.set_study_user_attr(study._study_id, _LENGTH, steps)


def same_study(study: optuna.Study, other: optuna.Study) -> bool:
    """Return whether two objects stand for one study in one storage."""
    return study._storage is other._storage and study._study_id == other._study_id


def finish_trial(
    study: optuna.Study,
    number: int,
    row: Row,
    objectives: Mapping[str, Direction],
    rung_values: Sequence[Sequence[float]] = (),
) -> None:
    """Tell Optuna the values of a trial whose Row is stored, and its objectives at the rungs.

    Does nothing if the trial is finished already.
    """
    columns = row.columns()
    values = [columns[name] for name in objectives if columns.get(name) is not None]
    storage, state = study._storage, TrialState.FAIL
    if row.status == "complete" and len(values) == len(study.directions):
        state = TrialState.COMPLETE
    elif row.status in ("pruned", "over-budget"):
        state = TrialState.PRUNED
    trial_id = storage.get_trial_id_from_study_id_trial_number(study._study_id, number)
    errors = [columns.get(f"{name}_se") for name in objectives]
    with suppress(UpdateFinishedTrialError):
        if state == TrialState.COMPLETE and any(errors):
            storage.set_trial_user_attr(trial_id, ERRORS, errors)
        if rung_values:
            storage.set_trial_user_attr(trial_id, _RUNG_VALUES, rung_values)
        storage.set_trial_state_values(trial_id, state, values if state == TrialState.COMPLETE else None)


def open_storage(url: str) -> optuna.storages.RDBStorage:
    """Open Optuna's storage of a store. Raises UserError if its schema has another version."""
    db_url, target = make_url(url), url
    options: dict[str, Any] = {"connect_args": {"timeout": LOCK_TIMEOUT_S}}
    if is_server(db_url):
        target = psycopg_url(db_url).render_as_string(hide_password=False)
        # One connection is kept, see `nas.store.locks.study_lock`; Optuna needs two to create its tables.
        options = {"pool_pre_ping": True, "pool_size": 1, "max_overflow": 1}
    with clear_storage_errors(url):
        try:
            with schema_lock(url):
                storage = optuna.storages.RDBStorage(target, engine_kwargs=options)
        except RuntimeError as error:
            raise store_error(url, error) from error
        if not is_server(db_url):
            event.listen(storage.engine, "connect", enable_write_ahead_log)
            storage.engine.dispose()  # earlier connections have no write-ahead log
    return storage


@contextmanager
def storage_connection(url: str) -> Iterator[optuna.storages.RDBStorage]:
    """Open Optuna's storage of a store, and close its connections at the end. Raises as `open_storage`."""
    storage = retry_on_disconnect(open_storage)(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


@contextmanager
def clear_storage_errors(url: str) -> Iterator[None]:
    """Translate a database's errors as `nas.store.database.translate_errors`, including those that Optuna wraps."""
    with translate_errors(url):
        try:
            yield
        except StorageInternalError as error:
            raise store_error(url, error) from error
