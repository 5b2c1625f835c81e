"""Downstream tasks: from the command line to the Row's columns, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import nas
from nas.cli import app
from nas.downstream_tasks import columns, with_columns
from search_spaces.errors import UserError
from tasks.language import hub

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
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A folder with a decoder that was trained for two steps, its store, and its Row's identity."""
    folder = tmp_path_factory.mktemp("trained")
    storage = f"sqlite:///{folder}/s.db"
    row = nas.evaluate(
        "stdlib-lm", preset="smoke", settings={"steps": 2, "measured": 8, "reports": 1}, arch="depth=1,width=16",
        save=folder / "net", storage=storage,
    )  # fmt: skip
    return folder / "net", storage, row.identity()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with one task, of which " a module" is the right answer to every second question."""
    names = ("os", "sys", "json", "re", "math", "ast")
    answers = (" a module", " qxz"), (" qxz", " a module")
    documents = [
        {"text": f"{name} is", **dict(zip(("right", "wrong"), answers[number % 2], strict=True))}
        for number, name in enumerate(names)
    ]
    (tmp_path / "modules.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (tmp_path / "modules.yaml").write_text(CHOICE.format(file=tmp_path / "modules.jsonl"))
    return tmp_path


def test_the_networks_row_has_the_results_as_columns(trained: tuple[Path, str, str], modules: Path) -> None:
    folder, storage, identity = trained
    row = nas.downstream(folder, tasks="modules", include=modules, storage=storage)
    assert row.identity() == identity
    assert row.columns()["modules_acc"] == 0.5
    assert row.columns()["modules_acc_se"] == pytest.approx((0.25 / 5) ** 0.5)
    (stored,) = nas.load(storage=storage).rows()
    assert stored == row
    few = nas.downstream(folder, tasks="modules", include=modules, storage=storage, examples=2)
    assert few.metrics == row.metrics
    assert (row.columns()["modules_examples"], few.columns()["modules_examples"]) == (6, 2)


def test_the_command_prints_the_row(trained: tuple[Path, str, str], modules: Path) -> None:
    folder, storage, _ = trained
    words = ["downstream", str(folder), "--tasks", "modules", "--include", str(modules), "--storage", storage]
    said = CliRunner().invoke(app, [*words, "--format", "csv"])
    assert said.exit_code == 0, said.output
    assert "modules_acc" in said.output


def test_a_store_without_the_networks_row_is_refused(
    trained: tuple[Path, str, str], tmp_path: Path, modules: Path
) -> None:
    folder, _, _ = trained
    other = f"sqlite:///{tmp_path}/other.db"
    nas.evaluate("digits-vit", preset="smoke", settings={"epochs": 1}, storage=other)
    with pytest.raises(UserError, match=r"the Row of .* is not in"):
        nas.downstream(folder, tasks="modules", include=modules, storage=other)


@pytest.mark.parametrize(
    ("tasks", "problem"), [("modulez", "Did you mean 'modules'"), ("qqqqqqqqqqqq", "lm-eval ls tasks")]
)
def test_an_unknown_task_is_refused(
    tasks: str, problem: str, trained: tuple[Path, str, str], modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lm_eval.tasks

    folder, storage, _ = trained
    manager, asked = lm_eval.tasks.TaskManager, list[dict[str, Any]]()

    def without_theirs(**of: Any) -> Any:
        asked.append(of)
        return manager(**{**of, "include_defaults": False})  # theirs are read for seconds

    monkeypatch.setattr(lm_eval.tasks, "TaskManager", without_theirs)
    with pytest.raises(UserError, match=problem):
        nas.downstream(folder, tasks=tasks, include=modules, storage=storage)
    assert asked == [{"include_path": str(modules), "include_defaults": False}, {"include_path": str(modules)}]


def test_a_task_without_its_data_is_one_line(trained: tuple[Path, str, str], modules: Path) -> None:
    folder, storage, _ = trained
    (modules / "modules.jsonl").write_text(json.dumps({"other": 1}))
    with pytest.raises(UserError, match="lm-eval cannot evaluate modules"):
        nas.downstream(folder, tasks="modules", include=modules, storage=storage)


def test_where_the_hub_is_out_of_reach_that_is_said_at_once(
    trained: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    folder, storage, _ = trained
    monkeypatch.setattr(hub, "reachable", lambda: False)
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    with pytest.raises(UserError, match="hellaswag are not in the hub's cache"):
        nas.downstream(folder, tasks="hellaswag", storage=storage)


def test_only_decoders_have_texts_to_score(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    nas.evaluate("digits-vit", preset="smoke", settings={"epochs": 1}, save=tmp_path / "net", storage=storage)
    with pytest.raises(UserError, match=r"for decoders, and .* is of task 'digits-vit'"):
        nas.downstream(tmp_path / "net", tasks="modules", storage=storage)


def test_columns_are_named_by_task_metric_and_filter() -> None:
    found = columns(
        {"t": {"alias": "t", "acc,none": 0.5, "acc_stderr,none": 0.1, "em,strict-match": 1, "ppl_stderr,none": "N/A"}}
    )
    assert found == {"t_acc": 0.5, "t_acc_se": 0.1, "t_em_strict_match": 1.0}


def test_numbers_of_an_evaluation_take_the_place_of_older_ones_with_their_errors(
    trained: tuple[Path, str, str],
) -> None:
    (row, *_) = nas.load(storage=trained[1]).rows()
    before = with_columns(row, {"t_acc": 0.5, "t_acc_se": 0.1, "t_ppl": 3.0})
    after = with_columns(before, {"t_acc": 0.25})
    assert {name: value for name, value in after.measures.items() if name.startswith("t_")} == {
        "t_acc": 0.25, "t_ppl": 3.0
    }  # fmt: skip
