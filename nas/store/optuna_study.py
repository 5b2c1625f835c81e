"""Optuna's studies and trials. Optuna's private names are used here and nowhere else."""

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
from nas.store.search_config import SearchConfig
from nas.store.store import CONFIG, REEVALUATES_FROM
from results.records.row import Direction, Row
from search_spaces.support.errors import UserError

ERRORS = "errors"  # the attribute of Optuna's trials that has the standard errors of its values
_SEED = "seed"  # that which has the seed of a trial whose candidate was tried before
_CONTINUES = "continues"  # that which has the number of the trial whose training another one goes on with
_REPORTS = "reports"  # that which has what it reported at the rungs: see `nas.samplers.rungs`
_LENGTH = "length"  # the attribute of Optuna's studies that has the steps of a whole training

optuna.logging.set_verbosity(optuna.logging.ERROR)


def open_study(
    storage: optuna.storages.RDBStorage, name: str, config: SearchConfig, sampler: optuna.samplers.BaseSampler
) -> optuna.Study:
    """Create a study, or load one with the same configuration.

    Raises:
        UserError: The study has another configuration (the message names the first difference), or is another
            program's.
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
        # Baselines are measured, not asked for: the stored ones stand.
        if key != "baselines" and new != old:
            missing, extra = (_values_beyond(old, new), _values_beyond(new, old)) if key == "axes" else ({}, {})
            if missing or extra:  # of hundreds of values one may be another
                old, new = missing, extra
            message = f"study {name!r} was made with {key} {_text(old)}, got {_text(new)}. Give another --study."
            raise UserError("mismatch", message, option=key, value=new, expected=old, study=name)
    return study


def _refuse_foreign_study(storage: optuna.storages.RDBStorage, name: str, directions: list[StudyDirection]) -> None:
    """Raise UserError where a study of that name is there that no search of ours made.

    One without trials and attributes is what a search leaves that was killed just as it began.
    """
    if name not in optuna.get_all_study_names(storage):
        return
    study = optuna.load_study(study_name=name, storage=storage)
    differs = study.directions != directions
    if CONFIG not in study.user_attrs and (differs or study.user_attrs or study.get_trials(deepcopy=False)):
        message = f"study {name!r} is another program's: no `nas search` made it. Give another --study."
        raise UserError("mismatch", message, option="--study", value=name)


def _values_beyond(axes: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values on axes that others have not."""
    beyond = {name: [value for value in values if value not in others.get(name, ())] for name, values in axes.items()}
    return {name: values for name, values in beyond.items() if values}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={item}" for name, item in value.items()) or "none"
    return repr(value)


def trials_of(study: optuna.Study) -> list[FrozenTrial]:
    """The study's trials by number, read once under a lock of the study."""
    return study._get_trials(deepcopy=False, use_cache=True)


def is_under_way(study: optuna.Study, trial: FrozenTrial) -> bool:
    """Whether a trial that was running when it was read still is."""
    return study._storage.get_trial(trial._trial_id).state == TrialState.RUNNING


def new_trial(study: optuna.Study, paused_trial: FrozenTrial | None = None) -> FrozenTrial:
    """A running trial without parameters, or one that goes on with the training of a paused trial."""
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
    """Write the parameters that a trial has not recorded yet, all at once: by `suggest`, each is a transaction.

    Raises:
        UserError: The study has other choices: somebody has installed or removed a topology since.
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
                else:  # this process has yet to see what the study's first trials had
                    cache._backend._set_trial_param_without_commit(session, trial._trial_id, name, value, axis)
            except ValueError as error:
                raise other_choices(name, axis) from error
    distributions.update({name: axes[name] for name in params})


def other_choices(name: str, now: Axis) -> UserError:
    """The error for an axis that Optuna refuses: it takes no other choices than a study's first trial."""
    value = tuple(now.choices) if isinstance(now, CategoricalDistribution) else now
    choices = ", ".join(map(str, value)) if isinstance(value, tuple) else value
    message = f"the study was begun with other values of axis {name!r} than {choices}. Give another --study."
    return UserError("mismatch", message, option=name, value=value)


@contextmanager
def proposal_lock(study: optuna.Study) -> Iterator[None]:
    """Be the only coordinator that proposes in a study. See `nas.store.locks.study_lock`."""
    with study_lock(study._storage._backend.engine, study.study_name):  # type: ignore[attr-defined]  # Optuna's cache
        study._thread_local.cached_all_trials = None  # as Optuna does before it makes a trial
        yield


def reevaluates_from(study: optuna.Study) -> int | None:
    """The number of the first trial that re-evaluates; None while there is none."""
    number: int | None = study._storage.get_study_user_attrs(study._study_id).get(REEVALUATES_FROM)
    return number


def reevaluate_from(study: optuna.Study, number: int | None) -> None:
    """Let trials from that number on re-evaluate candidates; None for no trial."""
    study._storage.set_study_user_attr(study._study_id, REEVALUATES_FROM, number)


def seed_of(trial: FrozenTrial) -> int | None:
    """The seed of a trial whose candidate had earlier trials; None where it has the study's seed."""
    seed: int | None = trial.user_attrs.get(_SEED)
    return seed


def set_trial_seed(study: optuna.Study, trial: FrozenTrial, seed: int) -> None:
    """Record the seed of a trial whose candidate had earlier trials."""
    study._storage.set_trial_user_attr(trial._trial_id, _SEED, seed)


def root_trial_number(trial: FrozenTrial) -> int:
    """The number of the trial that began its training: its own, or that of the trial which it continues."""
    number: int = trial.user_attrs.get(_CONTINUES, trial.number)
    return number


def started_trials(study: optuna.Study) -> list[int]:
    """The numbers of a study's trials, but for those that go on with the training of another."""
    return [trial.number for trial in trials_of(study) if _CONTINUES not in trial.user_attrs]


def reports_of(trial: FrozenTrial) -> list[list[float]]:
    """A trial's objectives at each rung so far."""
    reports: list[list[float]] = trial.user_attrs.get(_REPORTS, [])
    return reports


def length_of(study: optuna.Study) -> int | None:
    """The steps of a whole training; None while that is not known."""
    length: int | None = study._storage.get_study_user_attrs(study._study_id).get(_LENGTH)
    return length


def set_training_length(study: optuna.Study, steps: int) -> None:
    """Record the steps of a whole training."""
    study._storage.set_study_user_attr(study._study_id, _LENGTH, steps)


def same_study(study: optuna.Study, other: optuna.Study) -> bool:
    """Whether two objects are of one study in one storage."""
    return study._storage is other._storage and study._study_id == other._study_id


def conclude(
    study: optuna.Study,
    number: int,
    row: Row,
    objectives: Mapping[str, Direction],
    reports: Sequence[Sequence[float]] = (),
) -> None:
    """Give Optuna the values of a trial whose Row is stored, and what it reported at the rungs.

    It may have them already, from here or from another.
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
        if reports:
            storage.set_trial_user_attr(trial_id, _REPORTS, reports)
        storage.set_trial_state_values(trial_id, state, values if state == TrialState.COMPLETE else None)


def open_storage(url: str) -> optuna.storages.RDBStorage:
    """Optuna's view of a store. Raises UserError where its schema is of another version."""
    db_url, target = make_url(url), url
    options: dict[str, Any] = {"connect_args": {"timeout": LOCK_TIMEOUT_S}}
    if is_server(db_url):
        target = psycopg_url(db_url).render_as_string(hide_password=False)
        # One connection is kept, see `nas.store.locks.study_lock`; Optuna makes its tables with two.
        options = {"pool_pre_ping": True, "pool_size": 1, "max_overflow": 1}
    with clear_storage_errors(url):
        try:
            with schema_lock(url):
                storage = optuna.storages.RDBStorage(target, engine_kwargs=options)
        except RuntimeError as error:
            raise store_error(url, error) from error
        if not is_server(db_url):
            event.listen(storage.engine, "connect", enable_write_ahead_log)
            storage.engine.dispose()  # connections made before the listener have no write-ahead log
    return storage


@contextmanager
def storage_connection(url: str) -> Iterator[optuna.storages.RDBStorage]:
    """Optuna's storage of a store, with its connections closed at the end. Raises as `open_storage`."""
    storage = retry_on_disconnect(open_storage)(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


@contextmanager
def clear_storage_errors(url: str) -> Iterator[None]:
    """Do as `nas.store.database.translate_errors` does, with what Optuna makes of a database's errors."""
    with translate_errors(url):
        try:
            yield
        except StorageInternalError as error:
            raise store_error(url, error) from error
