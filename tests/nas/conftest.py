"""What tests of the engine share: a search of a toy task in a store of its own, quiet studies, and kinds of files."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest

import nas
import nas.search_plan
from nas.study import Study
from toy_networks import needs_onnx
from toy_searches import Interrupted, Search, a_search


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
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Interrupted:
    """Have a search be interrupted once it has concluded so many trials."""
    conclude, concluded = nas.search_plan.conclude, list[int]()

    def run(begin: Callable[[], Study], until: int) -> None:
        def concluding(study: optuna.Study, number: int, *others: Any) -> None:
            conclude(study, number, *others)
            concluded.append(number)
            if len(concluded) == until:
                raise KeyboardInterrupt

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(nas.search_plan, "conclude", concluding)
            with pytest.raises(KeyboardInterrupt):
                begin()

    return run
