"""Loading tasks by reference."""

import os
import shutil
import sys
import sysconfig
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import tasks.load
from expect import raises
from grouped import grouped
from search_spaces.support.errors import Kind
from search_spaces.support.registry import Registry
from tasks.base import Task
from tasks.load import load_task
from tasks.training.contract import check_task

HERE = Path(__file__).parent
MOONS = HERE / "moons.py"
PLUGIN = HERE.parent / "plugin_package"


def test_an_installed_name_is_a_task() -> None:
    assert load_task("digits-vit").name == "digits-vit"


def test_a_family_makes_a_task_of_its_argument() -> None:
    assert load_task("goal:FetchReach-v4").name == "goal:FetchReach-v4"


def test_a_task_has_its_data_folder(tmp_path: Path) -> None:
    assert load_task(f"{MOONS}:Moons", tmp_path).data == tmp_path


def test_a_task_in_one_file_keeps_the_contract() -> None:
    assert len(MOONS.read_text().splitlines()) < 72
    task = load_task(f"{MOONS}:Moons")
    check_task(task, replace(task.base, depth=1))


def test_invalid_references_of_tasks_are_refused() -> None:
    choices = ("Layer", "Moons")
    refusals: list[tuple[str, Kind, dict[str, object]]] = [
        ("digits-vitt", "unknown-name", {"option": "task", "value": "digits-vitt", "nearest": "digits-vit"}),
        ("nowhere.py:Moons", "missing-file", {"option": "task", "path": "nowhere.py"}),
        (str(MOONS), "bad-syntax", {"option": "task", "value": str(MOONS), "choices": choices}),
        (f"{MOONS}:Moon", "unknown-name", {"option": "class", "value": "Moon", "choices": choices, "nearest": "Moons"}),
        (f"{MOONS}:Layer", "bad-plugin", {"option": "task", "value": f"{MOONS}:Layer"}),
        (f"{MOONS}:points", "bad-plugin", {"option": "task", "value": f"{MOONS}:points"}),
    ]
    with grouped() as case:
        for reference, kind, fields in refusals:
            with case(reference), raises(kind, **fields):
                load_task(reference)


def moons_with(folder: Path, line: str) -> str:
    """A reference to a copy of moons.py with one more line in its class."""
    text = MOONS.read_text().replace("    version = 1\n", f"    version = 1\n    {line}\n")
    (folder / "task.py").write_text(text.replace("import torch\n", "import torch\nfrom tasks.base import *\n", 1))
    return f"{folder}/task.py:Moons"


def test_error_lists_the_missing_attributes_of_a_task(tmp_path: Path) -> None:
    text = MOONS.read_text().replace("    version = 1\n", "").replace("def example(", "def examples(")
    (tmp_path / "task.py").write_text(text)
    with raises("bad-plugin", task=f"{tmp_path}/task.py:Moons", needs=("version", "example")):
        load_task(f"{tmp_path}/task.py:Moons")


def test_metrics_named_like_columns_are_refused(tmp_path: Path) -> None:
    with grouped() as case:
        for names in (
            ("params",),
            ("Step",),
            ("test_loss",),
            ("loss", "loss"),
            ("Loss", "loss"),
            ("loss_se", "loss"),
            ("loss", "LOSS_se"),
            ("top-1",),
            ("5xx",),
            ("é",),
        ):
            metrics = ", ".join(f'Metric("{name}", "share", "max")' for name in names)
            reference = moons_with(tmp_path, f"metrics = ({metrics},)")
            with case(str(names)), raises("bad-plugin", task=reference, option="metrics", value=names):
                load_task(reference)


def test_faulty_task_classes_are_refused(tmp_path: Path) -> None:
    faults: list[tuple[str, dict[str, object]]] = [
        ("version = '1.0'", {"option": "version", "value": "1.0"}),
        ("version = 0", {"option": "version", "value": "0"}),
        ("metrics = ()", {"option": "metrics"}),
        ("metrics = ('loss',)", {"option": "metrics"}),
        ("metrics = property(lambda self: ())", {"option": "metrics"}),
        (
            "metrics = (Metric('q', 'share', 'maximize'),)",
            {"option": "direction", "value": "maximize", "choices": ("max", "min")},
        ),
    ]
    with grouped() as case:
        for line, fields in faults:
            reference = moons_with(tmp_path, line)
            with case(line), raises("bad-plugin", task=reference, **fields):
                load_task(reference)


def test_a_network_is_no_task(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch\nclass Net(torch.nn.Linear):\n    pass\n")
    with raises("bad-plugin", option="task", value=f"{tmp_path}/net.py:Net") as info:
        load_task(f"{tmp_path}/net.py:Net")
    assert "build()" in str(info.value)


def test_an_error_in_a_constructor_has_its_file_and_line(tmp_path: Path) -> None:
    reference = moons_with(tmp_path, "__init__ = lambda self, data: {}['boom']")
    line = (tmp_path / "task.py").read_text().partition("__init__ =")[0].count("\n") + 1
    with raises("bad-plugin", task=reference, where=f"{tmp_path}/task.py, line {line}") as caught:
        load_task(reference)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_during_import_has_its_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text("import json\njson.nothing\n")
    with raises("bad-plugin", path=str(file), where=f"{file}, line 2") as caught:
        load_task(f"{file}:Moons")
    assert isinstance(caught.value.__cause__, AttributeError)


def test_a_task_file_imports_its_neighbours(tmp_path: Path) -> None:
    shutil.copy(MOONS, tmp_path / "lunar_module.py")
    (tmp_path / "task.py").write_text("from lunar_module import Moons\n")
    assert load_task(f"{tmp_path}/task.py:Moons").name == "moons"


def test_an_edited_neighbour_is_imported_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    task = MOONS.read_text().replace("    version = 1\n", "    version = int(lunar_phase.NUMBER)\n")
    (tmp_path / "task.py").write_text(task.replace("import torch\n", "import lunar_phase\nimport torch\n", 1))
    versions = []
    (tmp_path / "lunar_phase.py").write_text("from lunar_number import NUMBER\n")
    for number in (1, 2, 3):
        (tmp_path / "lunar_number.py").write_text(f"NUMBER = {number}\n")
        os.utime(tmp_path / "lunar_number.py", (0, 0))  # files of one size and time have valid bytecode
        versions.append(load_task(f"{tmp_path}/task.py:Moons").version)
    assert versions == [1, 2, 3]


def test_neighbours_of_one_name_are_different_modules(tmp_path: Path) -> None:
    task = MOONS.read_text().replace("    version = 1\n", "    version = lunar_side.NUMBER\n")
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "task.py").write_text(task.replace("import torch\n", "import lunar_side\nimport torch\n", 1))
        (folder / "lunar_side.py").write_text(f"NUMBER = {number}\n")
    assert [load_task(f"{tmp_path}/{number}/task.py:Moons").version for number in (1, 2, 1)] == [1, 2, 1]


def lunar_task(folder: Path) -> str:
    """A reference to a copy of moons.py with a module beside it, lunar_craft."""
    folder.mkdir(exist_ok=True)
    text = MOONS.read_text().replace("import torch\n", "import lunar_craft\nimport torch\n", 1)
    (folder / "task.py").write_text(text)
    (folder / "lunar_craft.py").write_text("class Craft:\n    pass\n")
    return f"{folder}/task.py:Moons"


def test_an_unchanged_neighbour_stays_loaded(tmp_path: Path) -> None:
    lunar, moons = lunar_task(tmp_path / "one"), moons_with(tmp_path, "other = True")
    load_task(lunar)
    craft = sys.modules["lunar_craft"]
    for reference in (lunar, moons, lunar):
        load_task(reference)
        assert sys.modules["lunar_craft"] is craft
    (tmp_path / "one" / "lunar_craft.py").write_text("class Craft:\n    wings = 2\n")
    load_task(lunar)
    assert sys.modules["lunar_craft"].Craft.wings == 2


def test_the_program_and_installed_packages_stay_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = lunar_task(tmp_path)
    for name in ("__main__", "lunar_craft"):
        module = ModuleType(name)
        module.__file__ = str(tmp_path / "lunar_craft.py")
        monkeypatch.setitem(sys.modules, name, module)
    main, imported = sys.modules["__main__"], sys.modules["lunar_craft"]
    with monkeypatch.context() as installed:
        installed.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
        load_task(reference)
        assert sys.modules["lunar_craft"] is imported
    load_task(reference)
    assert sys.modules["lunar_craft"] is not imported  # nobody knows of which text it is
    assert sys.modules["__main__"] is main


def test_files_of_one_name_are_different_tasks(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "random.py").write_text(MOONS.read_text().replace('"moons"', f'"{name}"'))
    assert [load_task(f"{tmp_path}/{name}/random.py:Moons").name for name in ("one", "two")] == ["one", "two"]
    assert sys.modules["random"].__name__ == "random"


@pytest.fixture
def with_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put plugin_package on the path, with pip's metadata."""
    info = tmp_path / "stripes-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stripes\nVersion: 0.1\n")
    groups = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]["entry-points"]
    entries = "".join(f"{name} = {value}\n" for name, value in groups["nas.tasks"].items())
    (info / "entry_points.txt").write_text(f"[nas.tasks]\n{entries}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setattr(tasks.load, "TASKS", Registry("nas.tasks", "task"))


@pytest.mark.usefixtures("with_plugin")
def test_an_installed_package_brings_a_task() -> None:
    task = load_task("stripes")
    assert isinstance(task, Task)
    check_task(task, replace(task.base, depth=1))


@pytest.mark.usefixtures("with_plugin")
def test_a_broken_plugin_is_named_and_other_tasks_load() -> None:
    with raises("bad-plugin", option="task", value="broken-stripes", place="stripes.broken:Broken"):
        load_task("broken-stripes")
    assert {"broken-stripes", "stripes", "digits-vit"} <= set(tasks.load.TASKS.names())
    assert load_task("digits-vit").name == "digits-vit"
