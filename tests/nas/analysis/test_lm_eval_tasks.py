"""Downstream tasks: the Row's columns, the command, and errors."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import nas
from expect import raises
from nas.analysis.lm_eval_tasks import columns, with_columns
from nas.cli.main import app
from nas.store.store import Store
from tasks.language import hub
from toy_rows import a_row

pytest.importorskip("lm_eval")

CHOICE = """task: modules
dataset_path: json
dataset_kwargs:
  data_files: {{test: {file}}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{text}}}}"
doc_to_choice: "{{{{[right, wrong]}}}}"
doc_to_target: 0
metric_list:
  - metric: acc
"""


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A folder with a decoder after two steps of training, its store, and its Row's identity."""
    folder = tmp_path_factory.mktemp("trained")
    storage = f"sqlite:///{folder}/s.db"
    row = nas.evaluate(
        "stdlib-lm", preset="smoke", settings={"steps": 2, "measured": 8, "reports": 1}, arch="depth=1,width=16",
        save=folder / "net", storage=storage,
    )  # fmt: skip
    return folder / "net", storage, row.identity()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with one task; " a module" is the right answer to every second question."""
    names = ("os", "sys", "json", "re", "math", "ast")
    answers = (" a module", " qxz"), (" qxz", " a module")
    documents = [
        {"text": f"{name} is", **dict(zip(("right", "wrong"), answers[number % 2], strict=True))}
        for number, name in enumerate(names)
    ]
    (tmp_path / "modules.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (tmp_path / "modules.yaml").write_text(CHOICE.format(file=tmp_path / "modules.jsonl"))
    return tmp_path


def test_results_become_columns_of_the_row(decoder: tuple[Path, str, str], modules: Path) -> None:
    folder, storage, identity = decoder
    row = nas.downstream(folder, tasks="modules", include=modules, storage=storage)
    assert row.identity() == identity
    assert row.columns()["modules_acc"] == 0.5
    assert row.columns()["modules_acc_se"] == pytest.approx((0.25 / 5) ** 0.5)
    (store_row,) = nas.load(storage=storage).rows()
    assert store_row == row
    few = nas.downstream(folder, tasks="modules", include=modules, storage=storage, examples=2)
    assert few.metrics == row.metrics
    assert (row.columns()["modules_examples"], few.columns()["modules_examples"]) == (6, 2)


def test_the_command_prints_the_row(decoder: tuple[Path, str, str], modules: Path) -> None:
    folder, storage, _ = decoder
    words = ["downstream", str(folder), "--tasks", "modules", "--include", str(modules), "--storage", storage]
    result = CliRunner().invoke(app, [*words, "--format", "csv"])
    assert result.exit_code == 0, result.output
    assert "modules_acc" in result.output


def test_a_store_without_the_row_of_the_network_is_an_error(
    decoder: tuple[Path, str, str], tmp_path: Path, modules: Path
) -> None:
    folder, _, _ = decoder
    other = f"sqlite:///{tmp_path}/other.db"
    Store(other, make=True).add(a_row(), "s")
    with raises("missing-rows", option="--storage", path=str(folder)):
        nas.downstream(folder, tasks="modules", include=modules, storage=other)


def test_an_unknown_task_is_an_error(
    decoder: tuple[Path, str, str], modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lm_eval.tasks

    folder, storage, _ = decoder
    manager, calls = lm_eval.tasks.TaskManager, list[dict[str, Any]]()

    def without_defaults(**arguments: Any) -> Any:
        calls.append(arguments)
        return manager(**{**arguments, "include_defaults": False})  # reading the default tasks takes seconds

    monkeypatch.setattr(lm_eval.tasks, "TaskManager", without_defaults)
    for name, nearest in (("modulez", "modules"), ("qqqqqqqqqqqq", None)):
        calls.clear()
        with raises("unknown-name", option="--tasks", value=name, nearest=nearest):
            nas.downstream(folder, tasks=name, include=modules, storage=storage)
        assert calls == [{"include_path": str(modules), "include_defaults": False}, {"include_path": str(modules)}]


def test_a_task_without_its_data_is_an_error(decoder: tuple[Path, str, str], modules: Path) -> None:
    folder, storage, _ = decoder
    (modules / "modules.jsonl").write_text(json.dumps({"other": 1}))
    with raises("failed", tasks=("modules",)):
        nas.downstream(folder, tasks="modules", include=modules, storage=storage)


def test_missing_hub_data_is_an_error_without_a_connection(
    decoder: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets
    import lm_eval.tasks

    folder, storage, _ = decoder
    manager, hellaswag = lm_eval.tasks.TaskManager, Path(lm_eval.tasks.__file__).parent / "hellaswag"

    def hellaswag_alone(**arguments: Any) -> Any:
        return manager(include_path=str(hellaswag), include_defaults=False)  # reading all tasks takes seconds

    monkeypatch.setattr(lm_eval.tasks, "TaskManager", hellaswag_alone)
    monkeypatch.setattr(hub, "reachable", lambda: False)
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    with raises("unavailable", tasks=("hellaswag",)):
        nas.downstream(folder, tasks="hellaswag", storage=storage)


def test_networks_other_than_decoders_are_an_error(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    nas.evaluate("digits-vit", preset="smoke", settings="epochs=0,steps=1", save=tmp_path / "net", storage=storage)
    with raises("unsupported", task="digits-vit", path=str(tmp_path / "net")):
        nas.downstream(tmp_path / "net", tasks="modules", storage=storage)


def test_columns_are_named_by_task_metric_and_filter() -> None:
    values = columns(
        {"t": {"alias": "t", "acc,none": 0.5, "acc_stderr,none": 0.1, "em,strict-match": 1, "ppl_stderr,none": "N/A"}}
    )
    assert values == {"t_acc": 0.5, "t_acc_se": 0.1, "t_em_strict_match": 1.0}


def test_new_results_replace_older_ones_and_their_errors(decoder: tuple[Path, str, str]) -> None:
    (row, *_) = nas.load(storage=decoder[1]).rows()
    before = with_columns(row, {"t_acc": 0.5, "t_acc_se": 0.1, "t_ppl": 3.0})
    after = with_columns(before, {"t_acc": 0.25})
    assert {name: value for name, value in after.extra_metrics.items() if name.startswith("t_")} == {
        "t_acc": 0.25, "t_ppl": 3.0
    }  # fmt: skip
