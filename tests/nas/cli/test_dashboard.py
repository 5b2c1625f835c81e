"""Optuna's dashboard shows a copy of the searches, with names, costs and test metrics."""

import io
import json
import socket
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest

import nas
from expect import raises
from nas.cli.dashboard import copy_searches, serve
from toy_searches import Search


def test_dashboard_shows_a_copy_of_the_searches(search: Search, search_args: dict[str, Any]) -> None:
    rows = search(trials=4).rows()
    copy = copy_searches(storage=search_args["storage"])
    study = optuna.load_study(study_name="s", storage=copy)
    assert study.metric_names == ["accuracy", "flops"]
    assert [trial.values for trial in study.trials] == [[row.metrics["accuracy"], row.costs.flops] for row in rows]
    for trial, row in zip(study.trials, rows, strict=True):
        attributes = {"params": row.costs.params, "test_accuracy": row.test["accuracy"], "key": row.architecture.key}
        assert attributes.items() <= trial.user_attrs.items()
    dashboard = pytest.importorskip("optuna_dashboard", reason="optuna-dashboard is not installed")
    environment = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api/studies", "wsgi.input": io.BytesIO()}
    answer = dashboard.wsgi(copy)(environment, lambda *_: None)
    (summary,) = json.loads(b"".join(answer))["study_summaries"]
    assert summary["study_name"] == "s"


def test_deleting_in_the_copy_leaves_the_store(search: Search, search_args: dict[str, Any]) -> None:
    search(trials=1, space="depth-heads")
    copy = copy_searches(storage=search_args["storage"])
    optuna.delete_study(study_name="s", storage=copy)
    assert len(optuna.load_study(study_name="s", storage=copy_searches(storage=search_args["storage"])).trials) == 1


def test_wrong_stores_and_ports_are_errors(
    search_args: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, empty = f"sqlite:///{tmp_path}/other/studies.db", optuna.storages.InMemoryStorage()
    nas.evaluate(search_args["task"], preset="smoke", storage=other)
    with raises("missing-rows", option="--storage"):
        copy_searches(storage=other)
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with raises("in-use", option="--port", value=port):
            serve(empty, port)
    for port in (0, 65536):
        with raises("out-of-range", option="--port", value=port, least=1, most=65535):
            serve(empty, port)
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    with raises("needs-extra", extra="dashboard"):
        serve(empty)
