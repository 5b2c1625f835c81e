"""Searches that cannot succeed end before their first training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nas
from expect import raises
from tasks.training.classification import ClassificationTask
from toy_searches import TOY, Search


class Trained(Exception):
    """A training began."""


def _trains(*arguments: Any, **options: Any) -> Any:
    raise Trained


MOONS = Path(__file__).parents[2] / "tasks" / "moons.py"


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a copy of moons.py with other texts, and make any training fail the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nas.engine.run.make_pool", _trains)
    monkeypatch.setattr("nas.engine.scheduler.make_pool", _trains)

    def write(*changes: tuple[str, str]) -> str:
        text = MOONS.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        Path("task.py").write_text(text)
        return "task.py:Moons"

    return write


LOAD = "TensorSplits(train=points(1000, 1), validation=points(500, 2), test=points(500, 3))"
CLASS_BODY = ("    def example(self)", "    def __init__(self, data):\n        {}\n\n    def example(self)")


@pytest.mark.parametrize(
    ("change", "kind", "fields"),
    [
        (("points(1000, 1)", "points(40, 1)"), "mismatch", {"option": "batch", "value": 50, "most": 40}),
        (("torch.tensor(targets)", "torch.tensor(targets[:-1])"), "mismatch", {"option": "train"}),
        (("points(500, 2)", "tuple(each[:0] for each in points(500, 2))"), "bad-data", {"option": "validation"}),
        ((LOAD, "None"), "bad-plugin", {"value": "NoneType"}),
        ((LOAD, "(points(1000, 1), points(500, 2), points(500, 3))"), "bad-plugin", {"value": "tuple"}),
        (("torch.tensor(targets)", "targets"), "wrong-type", {"option": "train", "value": ("ndarray",)}),
        (("version = 1", "version = '1'"), "bad-plugin", {"option": "version"}),
        (("torch.tensor(targets)", "torch.tensor(targets + 1)"), "bad-data", {"option": "train", "value": (1, 2)}),
        (("torch.tensor(targets)", "torch.tensor(targets - 1)"), "bad-data", {"option": "train", "value": (-1, 0)}),
        (("torch.tensor(targets)", "torch.tensor(targets).float()"), "wrong-type", {"option": "train"}),
        (("dtype=torch.float32", "dtype=torch.float64"), "mismatch", {"option": "inputs", "task": "moons"}),
        (("inputs, dtype=torch.float32", "inputs[:, :1], dtype=torch.float32"), "mismatch", {"option": "inputs"}),
        (("inputs, dtype=torch.float32)", "inputs, dtype=torch.float32)[None].movedim(0, 2)"), "mismatch", {}),
        ((LOAD, f"{LOAD} if self.data / 'moons' else None"), "missing-value", {"option": "--data", "task": "moons"}),
    ],
)
def test_faulty_data_end_a_search_and_an_evaluation(
    faulty: Callable[..., str], change: tuple[str, str], kind: Any, fields: dict[str, object]
) -> None:
    reference = faulty(change)
    with raises(kind, **fields):
        nas.search(reference, trials=4)
    with raises(kind, **fields):
        nas.evaluate(reference)


def test_a_batch_on_an_axis_is_checked_before_the_first_trial(faulty: Callable[..., str]) -> None:
    with raises("mismatch", option="batch", value=2000, most=1000):
        nas.search(faulty(), axis="recipe.batch=100,2000", trials=4)


def test_the_budget_and_the_sampler_are_checked_before_the_data_are_read(faulty: Callable[..., str]) -> None:
    reference = faulty((LOAD, "print(1 / 0)"))
    with raises("infeasible"):
        nas.search(reference, budget="params<=1", trials=4)
    with raises("unknown-name", value="tpee"):
        nas.search(reference, sampler="tpee", trials=4)


def test_the_data_are_checked_against_the_networks_once(
    faulty: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[object] = []
    monkeypatch.setattr(ClassificationTask, "check_data", lambda task, recipe: checked.append(recipe))
    with raises("mismatch", option="batch"):
        nas.search(faulty(), axis="recipe.batch=50,100,2000", trials=4)
    with pytest.raises(Trained):
        nas.search(faulty(), axis="recipe.batch=50,100", trials=4)
    assert len(checked) == 1


def test_an_ignored_axis_ends_a_search(faulty: Callable[..., str]) -> None:
    with raises("bad-plugin", task="moons", option="depth"):
        nas.search(faulty(("range(architecture.depth)", "range(4)")), trials=4)


def test_a_search_of_costs_alone_is_refused(search: Search) -> None:
    for objectives in ("params", "params,flops", ["flops"]):
        with raises("unsupported", option="--objectives", choices=("accuracy", "loss")):
            search(task=TOY, objectives=objectives)


@pytest.mark.parametrize(
    ("body", "kind", "fields"),
    [
        ("super().__init__(data / 'moons')", "missing-value", {"option": "--data", "cause": "TypeError"}),
        ("self.folder = data.parent", "missing-value", {"option": "--data", "cause": "AttributeError"}),
        ("self.version = '2'", "bad-plugin", {"option": "version", "value": "2"}),
    ],
)
def test_a_task_that_needs_data_asks_for_them(
    faulty: Callable[..., str], body: str, kind: Any, fields: dict[str, object]
) -> None:
    old, new = CLASS_BODY
    reference = faulty((old, new.format(body)))
    with raises(kind, task=reference, **fields):
        nas.search(reference, trials=4)


def test_a_task_without_data_has_its_own_error(faulty: Callable[..., str]) -> None:
    without = ("    version = 1", "    version, takes_data = 1, False")
    for change in ((LOAD, "None + 1"), (CLASS_BODY[0], CLASS_BODY[1].format("None + 1"))):
        with raises("bad-plugin", cause="TypeError"):
            nas.search(faulty(without, change), trials=4)


@pytest.mark.parametrize("signature", ["self", "self, data, labels", "self, *, data"])
def test_a_task_must_be_constructed_from_its_data(faulty: Callable[..., str], signature: str) -> None:
    old, new = CLASS_BODY
    reference = faulty((old, new.format("pass").replace("self, data", signature)))
    with raises("bad-plugin", task=reference, option="__init__") as info:
        nas.search(reference, trials=4)
    assert "task.py, line " in str(info.value)


@pytest.mark.parametrize("task", [object(), nas])
def test_a_task_is_named_by_text(task: Any, in_tmp_path: None) -> None:
    with raises("wrong-type", option="task", type=type(task).__name__):
        nas.search(task, trials=4)
