"""Optuna's dashboard shows a copy of our searches, with names, costs and test metrics; the store stays as it was."""

import io
import json
import socket
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest

import nas
from nas.commands.dashboard import copied, serve
from search_spaces.errors import UserError
from toy_searches import Search


def test_searches_are_shown_with_names_costs_and_test_metrics(search: Search, asked: dict[str, Any]) -> None:
    rows = search(trials=4).rows()
    study = optuna.load_study(study_name="s", storage=copied(storage=asked["storage"]))
    assert study.metric_names == ["accuracy", "flops"]
    assert [trial.values for trial in study.trials] == [[row.metrics["accuracy"], row.costs.flops] for row in rows]
    for trial, row in zip(study.trials, rows, strict=True):
        told = {"params": row.costs.params, "test_accuracy": row.test["accuracy"], "key": row.architecture.key}
        assert told.items() <= trial.user_attrs.items()


def test_what_is_deleted_there_is_still_in_the_store(search: Search, asked: dict[str, Any]) -> None:
    search(trials=2)
    copy = copied(storage=asked["storage"])
    optuna.delete_study(study_name="s", storage=copy)
    assert len(optuna.load_study(study_name="s", storage=copied(storage=asked["storage"])).trials) == 2


def test_the_dashboard_reads_the_copy(search: Search, asked: dict[str, Any]) -> None:
    dashboard = pytest.importorskip("optuna_dashboard", reason="optuna-dashboard is not installed")
    search(trials=2)
    environment = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api/studies", "wsgi.input": io.BytesIO()}
    answer = dashboard.wsgi(copied(storage=asked["storage"]))(environment, lambda *_: None)
    (summary,) = json.loads(b"".join(answer))["study_summaries"]
    assert summary["study_name"] == "s"


def test_what_cannot_be_shown_is_said(
    search: Search, asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(trials=1)
    other = f"sqlite:///{tmp_path}/other/studies.db"
    nas.evaluate(asked["task"], preset="smoke", storage=other)
    with pytest.raises(UserError, match="no search in"):
        copied(storage=other)
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        with pytest.raises(UserError, match="--port"):
            serve(copied(storage=asked["storage"]), taken.getsockname()[1])
    for port in (0, 65536):
        with pytest.raises(UserError, match=f"--port must be from 1 to 65535, got {port}"):
            serve(copied(storage=asked["storage"]), port)
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    with pytest.raises(UserError, match=r"\.\[dashboard\]"):
        serve(copied(storage=asked["storage"]))
