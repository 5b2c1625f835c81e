"""From what somebody typed to a task."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tasks.load
from search_spaces.errors import UserError
from search_spaces.registry import Registry
from tasks.base import Task
from tasks.load import load_task
from tasks.testing import check_task

HERE = Path(__file__).parent
MOONS = HERE / "moons.py"


def test_an_installed_name_is_a_task() -> None:
    assert load_task("digits-vit").name == "digits-vit"


def test_a_family_makes_a_task_of_what_stands_behind_its_name() -> None:
    assert load_task("goal:FetchReach-v4").name == "goal:FetchReach-v4"


def test_a_task_knows_where_its_data_is(tmp_path: Path) -> None:
    assert load_task(f"{MOONS}:Moons", tmp_path).data == tmp_path


def test_a_task_in_one_file_keeps_the_contract() -> None:
    assert len(MOONS.read_text().splitlines()) < 72
    check_task(load_task(f"{MOONS}:Moons"))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("digits-vitt", "Did you mean 'digits-vit'"),
        ("nowhere.py:Moons", "'nowhere.py'. Give FILE.py:CLASS"),
        (str(MOONS), "Classes there: Layer, Moons"),
        (f"{MOONS}:Moon", "Did you mean 'Moons'"),
        (f"{MOONS}:Layer", "must be a subclass of tasks.base.Task"),
        (f"{MOONS}:points", "must be a subclass of tasks.base.Task"),
    ],
)
def test_what_is_no_task_is_a_mistake(reference: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        load_task(reference)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_task_lacks_is_named(tmp_path: Path) -> None:
    text = MOONS.read_text().replace("    version = 1\n", "").replace("def example(", "def examples(")
    (tmp_path / "task.py").write_text(text)
    with pytest.raises(UserError, match="lacks version, example"):
        load_task(f"{tmp_path}/task.py:Moons")


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("params", "no metric may be called 'params'"),
        ("Step", "no metric may be called 'Step'"),
        ("test_loss", "no metric may be called 'test_loss'"),
        ("loss loss", "got 'loss' twice"),
        ("Loss loss", "got 'loss' twice"),
        ("loss_se loss", "loss_se is the standard error"),
        ("loss LOSS_se", "LOSS_se is the standard error"),
        ("top-1", "a metric's name is a letter and then letters, digits and _, got 'top-1'"),
        ("5xx", "got '5xx'"),
        ("é", "got 'é'"),
    ],
)
def test_a_metric_that_would_hide_a_column_is_refused(tmp_path: Path, metrics: str, message: str) -> None:
    named = ", ".join(f'Metric("{name}", "share", "max")' for name in metrics.split())
    text = MOONS.read_text().replace("    version = 1\n", f"    version = 1\n    metrics = ({named},)\n")
    (tmp_path / "task.py").write_text(f"from tasks.base import Metric\n{text}")
    with pytest.raises(UserError) as caught:
        load_task(f"{tmp_path}/task.py:Moons")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("metrics = ()", "must be a tuple of at least one Metric, got ()"),
        ("metrics = ('loss',)", "must be a tuple of at least one Metric, got ('loss',)"),
        ("metrics = property(lambda self: ())", "must be a tuple of at least one Metric, got <property"),
        ("metrics = (Metric('q', 'share', 'maximize'),)", "must be max or min, got 'maximize' of 'q'"),
        ("__init__ = lambda self, data: {}['boom']", "could not be made: KeyError: 'boom' ("),
    ],
)
def test_what_is_wrong_with_a_task_is_said_in_one_line(tmp_path: Path, metrics: str, message: str) -> None:
    text = MOONS.read_text().replace("    version = 1\n", f"    version = 1\n    {metrics}\n")
    (tmp_path / "task.py").write_text(text.replace("import torch\n", "import torch\nfrom tasks.base import *\n", 1))
    with pytest.raises(UserError) as caught:
        load_task(f"{tmp_path}/task.py:Moons")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_imported_is_a_mistake_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("import json\njson.nothing\n")
    with pytest.raises(UserError, match=r"task.py could not be imported: AttributeError.*task.py, line 2\)"):
        load_task(f"{tmp_path}/task.py:Moons")


def test_a_file_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    shutil.copy(MOONS, tmp_path / "lunar_module.py")
    (tmp_path / "task.py").write_text("from lunar_module import Moons\n")
    assert load_task(f"{tmp_path}/task.py:Moons").name == "moons"


def test_files_of_the_same_name_are_two_tasks(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "random.py").write_text(MOONS.read_text().replace('"moons"', f'"{name}"'))
    assert [load_task(f"{tmp_path}/{name}/random.py:Moons").name for name in ("one", "two")] == ["one", "two"]
    assert sys.modules["random"].__name__ == "random"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the package in plugin_package is installed in, as pip does it."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(HERE.parent / "plugin_package", folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(folder / "source")], check=True)
    return folder / "site"


@pytest.fixture
def with_plugin(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(plugin))
    monkeypatch.setattr(tasks.load, "TASKS", Registry("nas.tasks", "task"))


@pytest.mark.usefixtures("with_plugin")
def test_an_installed_package_brings_a_task() -> None:
    task = load_task("stripes")
    assert isinstance(task, Task)
    check_task(task)


@pytest.mark.usefixtures("with_plugin")
def test_a_broken_plugin_is_reported_by_name_and_takes_nothing_else_down() -> None:
    with pytest.raises(UserError, match=r"'broken-stripes' \(stripes.broken:Broken\) could not be imported"):
        load_task("broken-stripes")
    assert {"broken-stripes", "stripes", "digits-vit"} <= set(tasks.load.TASKS.names())
    assert load_task("digits-vit").name == "digits-vit"
