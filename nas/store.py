"""Where studies live: one Optuna storage, in which each trial carries its Row. Loads no torch.

The coordinator of a search is the only writer of its study; a lock beside a SQLite file sees to it.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock, Timeout
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from nas.options import DEFAULT_STORE
from results.row import Direction, Row
from search_spaces.errors import UserError, unknown

ROW, SETTINGS = "row", "settings"  # attributes of a trial and of a study
PATIENCE_S = 60  # how long a write waits for somebody else's lock

optuna.logging.set_verbosity(optuna.logging.ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a study is about. A study is continued only with the settings it was made with.

    Attributes:
        task: Name, or FILE.py:CLASS.
        task_version: Version of the task.
        space: Name of the search space.
        base: The architecture that the space is laid out around, as text.
        budget: Canonical text of the budget, "" where there is none.
        objectives: What is searched for -> "max" or "min", in order.
        preset: The task's preset.
        seed: Seed of the search and of every evaluation.
        sampler: Name of the sampler.
        data: What `--data` said, or None.
        metrics: Every metric of the task -> "max" or "min".
        baselines: Simple methods -> their columns, to hold results against.
    """

    task: str
    task_version: int
    space: str
    base: str
    budget: str
    objectives: Mapping[str, Direction]
    preset: str
    seed: int
    sampler: str
    data: str | None = None
    metrics: Mapping[str, Direction] = field(default_factory=dict)
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def open_storage(url: str, *, make: bool = False) -> optuna.storages.RDBStorage:
    """Open a storage; `make` makes a SQLite file where there is none. Raises UserError where it cannot be used."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UserError(f"--storage must be a database URL such as {DEFAULT_STORE}, got {url!r}.") from None
    sqlite = parsed.get_backend_name() == "sqlite"
    if sqlite and parsed.database in (None, "", ":memory:"):
        raise UserError(f"a study must outlive its command, got the storage {url!r} in memory. Give sqlite:///FILE.")
    if sqlite and not make and not Path(str(parsed.database)).exists():
        raise UserError(f"there is no study in {parsed.database}. Make one with `nas search`, or give --storage.")
    options = {"connect_args": {"timeout": PATIENCE_S}} if sqlite else {}
    with clear_errors(url):
        try:
            if sqlite:
                Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)
            storage = optuna.storages.RDBStorage(url, engine_kwargs=options)
        except (ImportError, NoSuchModuleError) as error:
            raise UserError(f"the driver of store {_shown(url)} is not installed: {_first_line(error)}") from error
        except (OSError, RuntimeError) as error:  # a folder that cannot be; a schema of another version
            raise _unusable(url, error) from error
        if sqlite:
            event.listen(storage.engine, "connect", _write_ahead)
            storage.engine.dispose()  # connections made before the listener have no write-ahead log
    return storage


def _write_ahead(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


@contextmanager
def clear_errors(url: str) -> Iterator[None]:
    """Turn what a storage raises into a UserError that names the store and what to do."""
    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise _unusable(url, error) from error


def _unusable(url: str, error: Exception) -> UserError:
    return UserError(
        f"store {_shown(url)} cannot be used: {_first_line(error.__cause__ or error)}. What it holds is kept; free the"
        " file or its disk and run the same command again, or give another --storage."
    )


def _shown(url: str) -> str:
    parsed = make_url(url)
    return str(parsed.database) if parsed.get_backend_name() == "sqlite" else parsed.render_as_string()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextmanager
def only_writer(url: str, name: str) -> Iterator[None]:
    """Hold the study against a second coordinator. Other databases than SQLite are held by whoever runs them."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        yield
        return
    path = Path(f"{parsed.database}.{slug(name)}.lock")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except OSError as error:
        if not isinstance(error, Timeout):
            raise _unusable(url, error) from error
        raise UserError(f"study {name!r} is being searched by another process, which holds {path}.") from None
    try:
        yield
    finally:
        lock.release()


def slug(name: str) -> str:
    """A file name for a study: what is not a letter, digit, dot, dash or underscore becomes a dash."""
    return "".join(character if character.isalnum() or character in "._-" else "-" for character in name).strip(".")


def open_study(
    storage: optuna.storages.RDBStorage, name: str, settings: Settings, sampler: optuna.samplers.BaseSampler
) -> optuna.Study:
    """Make a study, or continue one that has the same settings.

    Raises:
        UserError: The study exists with other settings; the message names the first that differs.
    """
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        sampler=sampler,
        directions=["maximize" if direction == "max" else "minimize" for direction in settings.objectives.values()],
        load_if_exists=True,
    )
    stored = study.user_attrs.get(SETTINGS)
    if stored is None:
        study.set_user_attr(SETTINGS, json.loads(json.dumps(asdict(settings))))
        return study
    asked = json.loads(json.dumps(asdict(settings)))
    for key in asked:
        # Baselines are measured, not asked for: the stored ones stand.
        if key != "baselines" and asked[key] != stored.get(key):
            shown = (f"{key} {_plain(stored.get(key))}", _plain(asked[key]))
            raise UserError(f"study {name!r} was made with {shown[0]}, got {shown[1]}. Give another --study.")
    return study


def _plain(value: Any) -> str:
    return ",".join(value) if isinstance(value, dict) else repr(value)


def study_names(storage: optuna.storages.RDBStorage) -> list[str]:
    """Every study with settings of ours, the newest last."""
    studies = storage.get_all_studies()
    return [study.study_name for study in studies if SETTINGS in storage.get_study_user_attrs(study._study_id)]


def load_study(storage: optuna.storages.RDBStorage, name: str | None) -> optuna.Study:
    """An existing study by name, or the newest. Raises UserError where there is none."""
    names = study_names(storage)
    if not names:
        raise UserError(
            f"there is no study in {_shown(str(storage.url))}. Make one with `nas search`, or give --storage."
        )
    if name is not None and name not in names:
        raise unknown("study", name, names)
    return optuna.load_study(study_name=name or names[-1], storage=storage)


def settings_of(study: optuna.Study) -> Settings:
    """The settings a study was made with; fields that a newer version added are passed over."""
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in study.user_attrs[SETTINGS].items() if name in known})


def row_of(trial: FrozenTrial) -> Row | None:
    """The Row a trial carries, None while it runs."""
    text = trial.user_attrs.get(ROW)
    return None if text is None else Row.from_json(text)


def rows_of(study: optuna.Study) -> list[Row]:
    """The Row of every finished trial, in the order of trials."""
    trials = study.get_trials(deepcopy=False)
    return [row for row in map(row_of, trials) if row is not None]


def tell(study: optuna.Study, trial_number: int, trial_id: int, row: Row) -> None:
    """Record a finished evaluation: first the Row, then the values, so that a crash between loses nothing."""
    study._storage.set_trial_user_attr(trial_id, ROW, row.to_json())
    conclude(study, trial_number, row)


def conclude(study: optuna.Study, trial_number: int, row: Row) -> None:
    """Give Optuna the values of a trial whose Row is stored."""
    columns = row.columns()
    values = [columns[name] for name in settings_of(study).objectives if columns.get(name) is not None]
    if row.status == "complete" and len(values) == len(study.directions):
        study.tell(trial_number, values)
    else:
        state = TrialState.PRUNED if row.status in ("pruned", "over-budget") else TrialState.FAIL
        study.tell(trial_number, state=state)
