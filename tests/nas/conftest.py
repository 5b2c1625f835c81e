"""What tests of the engine share: a search of a toy task in a store of its own, quiet studies, and kinds of files."""

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
    """Optuna runs thirty files of its database's history for each storage that it opens: here, once in a process."""
    read, known = ScriptDirectory.from_config, dict[str | None, ScriptDirectory]()

    def once(config: Config) -> ScriptDirectory:
        place = config.get_main_option("script_location")
        if place not in known:
            known[place] = read(config)
        return known[place]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", once)
        yield


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a search asks for, each with a store of its own name: a store knows what was evaluated before."""
    monkeypatch.chdir(tmp_path)
    return a_search(tmp_path)


@pytest.fixture
def search(asked: dict[str, Any]) -> Search:
    def run(**changes: Any) -> Study:
        return nas.search(**{**asked, **changes})

    return run


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `nas` in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    return partial(run_nas, capsys)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Callable[[str], str]:
    """Another store."""
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
    """Have a search be interrupted once it has concluded so many trials."""
    conclude, concluded = nas.engine.plan.finish_trial, list[int]()

    def run(begin: Callable[[], Study], until: int) -> None:
        def concluding(study: optuna.Study, number: int, *others: Any) -> None:
            conclude(study, number, *others)
            concluded.append(number)
            if len(concluded) == until:
                raise KeyboardInterrupt

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(nas.engine.plan, "finish_trial", concluding)
            with pytest.raises(KeyboardInterrupt):
                begin()

    return run
