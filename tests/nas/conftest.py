"""Fixtures of nas's tests: a search of a toy task with its own store, quiet Optuna, and endings of export files."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

import nas
import nas.engine.plan
from command_line import Command, run_nas
from nas.report.study import Study
from toy_networks import needs_onnx
from toy_searches import Interrupt, Search, a_search


@pytest.fixture(autouse=True, scope="session")
def _migrations_of_optuna() -> Iterator[None]:
    """Read Optuna's thirty migration scripts once per process, not once per storage."""
    load, cache = ScriptDirectory.from_config, dict[str | None, ScriptDirectory]()

    def from_config(config: Config) -> ScriptDirectory:
        location = config.get_main_option("script_location")
        if location not in cache:
            cache[location] = load(config)
        return cache[location]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", from_config)
        yield


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def search_args(tmp_path: Path, in_tmp_path: None) -> dict[str, Any]:
    """The arguments of a search; the store is new, since stores reuse earlier evaluations."""
    return a_search(tmp_path)


@pytest.fixture
def search(search_args: dict[str, Any]) -> Search:
    def run(**changes: Any) -> Study:
        return nas.search(**{**search_args, **changes})

    return run


@pytest.fixture
def command(in_tmp_path: None, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `nas` in an empty folder, in this process."""
    return partial(run_nas, capsys)


@pytest.fixture
def store_url(tmp_path: Path) -> Callable[[str], str]:
    """The URL of another store in the test's folder."""
    return lambda name: f"sqlite:///{tmp_path}/{name}/studies.db"


@pytest.fixture
def quiet() -> Iterator[None]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(optuna.logging.INFO)


@pytest.fixture(params=(".safetensors", ".pt2", ".onnx"))
def ending(request: pytest.FixtureRequest) -> str:
    if request.param == ".onnx":
        needs_onnx()
    return str(request.param)


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Interrupt a search after it has concluded this many trials."""
    conclude, numbers = nas.engine.plan.finish_trial, list[int]()

    def run(begin: Callable[[], Study], until: int) -> None:
        def conclude_or_interrupt(study: optuna.Study, number: int, *arguments: Any) -> None:
            conclude(study, number, *arguments)
            numbers.append(number)
            if len(numbers) == until:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(nas.engine.plan, "finish_trial", conclude_or_interrupt)
            with pytest.raises(KeyboardInterrupt):
                begin()

    return run
