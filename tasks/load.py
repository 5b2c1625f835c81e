"""Load a task by reference: an installed name, FAMILY:NAME, or FILE.py:CLASS."""

import hashlib
import importlib.util
import inspect
import sys
import sysconfig
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from torch import nn

from results.records.columns import metric_name_problem
from search_spaces.support.errors import UserError, cause_fields, reason_of, unknown_name_error
from tasks.base import Metric, Task
from tasks.local_sources import local_sources
from tasks.plugin_errors import plugin_error
from tasks.registry import TASK_FAMILIES, TASKS, kind_of


def load_task(reference: str, data: Path | None = None) -> Task:
    """Construct the task `reference` on the data at `data`, or on its default data if None.

    Raises:
        UserError: The name, file or class does not exist; a plug-in or file cannot be imported; the class is not a
            complete Task or cannot be constructed; or its data is missing.
    """
    kind = task_class(reference)
    _check_constructor(reference, kind)
    try:
        task = kind(data)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # a third-party task may raise anything, and needs no traceback of ours
        lacks_data = kind.takes_data and data is None
        raise plugin_error(f"task {reference!r} could not be created", error, reference, lacks_data) from error
    _check_version(reference, task.version)
    return task


def task_class(reference: str) -> type[Task]:
    """Return the class `reference`, checked to be a complete Task. Raises UserError as `load_task` does."""
    kind: type[Task]
    match kind_of(reference):
        case "file":
            kind = _from_file(reference)
        case "family":
            family, _, name = reference.partition(":")
            kind = TASK_FAMILIES.load(family)(name)
        case "name":
            kind = TASKS.load(reference)
    _check(reference, kind)
    return kind


def _check_constructor(reference: str, kind: type[Task]) -> None:
    """Raise UserError if a task cannot be constructed from its data alone."""
    parameters = inspect.signature(kind.__init__)
    try:
        parameters.bind(kind, None)
    except TypeError as error:
        code = getattr(kind.__init__, "__code__", None)
        where = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
        message = (
            f"__init__ of task {reference!r} must take one argument, data, got __init__{parameters}{where}. "
            "Write def __init__(self, data=None): super().__init__(data)."
        )
        raise UserError("bad-plugin", message, task=reference, option="__init__", value=str(parameters)) from error


def _from_file(reference: str) -> Any:
    text, _, name = reference.rpartition(":")
    path = Path(text or name)
    if not path.is_file():
        message = f"a task's file must exist, got {str(path)!r}. Give FILE.py:CLASS."
        raise UserError("missing-file", message, option="task", path=str(path))
    module = _import_file(path)
    classes = [
        key for key, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    if not text:
        message = f"expected FILE.py:CLASS, got {reference!r}. Classes in the file: {', '.join(classes) or 'none'}."
        raise UserError("bad-syntax", message, option="task", value=reference, choices=tuple(classes))
    if name not in vars(module):
        raise unknown_name_error("class", name, classes, of=str(path))
    return vars(module)[name]


class _UncachedFile(SourceFileLoader):
    """A loader without bytecode cache, which can miss the second of two edits within one second."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _import_file(path: Path) -> ModuleType:
    path = path.resolve()
    # The module name depends on the path, so that two files of one name, or one called random.py, do not collide.
    name = f"task_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:10]}"
    spec = importlib.util.spec_from_loader(name, _UncachedFile(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    files = [loader.path for each in sys.modules.values() if isinstance(loader := _loader(each), _UncachedFile)]
    _forget_neighbours(path)
    _add_to_path(str(path.parent), {str(Path(file).parent) for file in files})
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # a third-party file may raise anything, and needs no traceback of ours
        del sys.modules[name]
        message = f"{path} could not be imported: {reason_of(error)}"
        raise UserError("bad-plugin", message, path=str(path), **cause_fields(error)) from error
    return module


def _loader(module: ModuleType) -> Any:
    return getattr(module, "__loader__", None)


_TEXTS: dict[str, bytes] = {}
"""The local modules of tasks as they were last imported: file -> text."""


def _forget_neighbours(file: Path) -> None:
    """Make local modules of a task be imported from their current text, and not those of one name in another folder.

    If nothing changed they stay loaded, so that their classes are not made twice. Bytecode of changed ones is removed,
    since it can miss the second of two edits within one second.
    """
    sites = [*map(sysconfig.get_path, ("purelib", "platlib"))]
    neighbours = [path for path in local_sources(file)[1:] if not any(map(path.is_relative_to, sites))]
    texts = {str(path): path.read_bytes() for path in neighbours}
    names = {path.relative_to(file.parent).parts[0].removesuffix(".py") for path in neighbours}
    modules = {name: getattr(each, "__file__", None) for name, each in sys.modules.items() if name != "__main__"}
    forgotten = [
        name
        for name, path in modules.items()
        if path in _TEXTS and path not in texts and name.partition(".")[0] in names
    ]
    if forgotten or any(_TEXTS.get(path) != text for path, text in texts.items()):
        forgotten += [name for name, path in modules.items() if path in texts]
        for neighbour in neighbours:
            with suppress(OSError):
                Path(importlib.util.cache_from_source(neighbour)).unlink()
    for name in forgotten:
        del sys.modules[name]
    _TEXTS.update(texts)
    importlib.invalidate_caches()


def _add_to_path(folder: str, earlier: set[str]) -> None:
    """Make modules in a task's folder importable: after all others, but before those of tasks loaded earlier."""
    place = len(sys.path)
    while place and sys.path[place - 1] in earlier:
        place -= 1
    if folder not in sys.path[:place]:
        sys.path[place:] = [folder, *(other for other in sys.path[place:] if other != folder)]


def _check_version(reference: str, version: Any) -> None:
    if not isinstance(version, int) or version < 1:
        message = f"task {reference!r}: version must be a whole number from 1 on, got {version!r}. Write version = 1."
        raise UserError("bad-plugin", message, task=reference, option="version", value=str(version))


def _check(reference: str, kind: Any) -> None:
    if not (inspect.isclass(kind) and issubclass(kind, Task)):
        message = f"a task must be a subclass of tasks.base.Task, got {reference!r}, which is {kind!r}."
        if inspect.isclass(kind) and issubclass(kind, nn.Module):
            message = (
                f"{reference!r} is a network, and a task must be a subclass of tasks.Task. Return it from its build()."
            )
        raise UserError("bad-plugin", message, option="task", value=reference)
    attributes = {
        name
        for parent in kind.__mro__
        for name, hint in inspect.get_annotations(parent).items()
        if "ClassVar" in str(hint)
    }
    missing = sorted(attributes - set(dir(kind))) + sorted(kind.__abstractmethods__)
    if missing:
        message = f"task {reference!r} lacks {', '.join(missing)}. See tasks.base.Task."
        raise UserError("bad-plugin", message, task=reference, needs=tuple(missing))
    metrics: Any = kind.metrics
    if (
        not isinstance(metrics, tuple | list)
        or not metrics
        or not all(isinstance(metric, Metric) for metric in metrics)
    ):
        raise UserError(
            "bad-plugin",
            f"task {reference!r}: metrics must be a tuple of at least one Metric, got {metrics!r}. "
            "Write metrics = (Metric(name, unit, direction),) in the class.",
            task=reference,
            option="metrics",
        )
    for metric in metrics:
        if metric.direction not in ("max", "min"):
            raise UserError(
                "bad-plugin",
                f"task {reference!r}: the direction of a metric must be max or min, got {metric.direction!r} of "
                f"{metric.name!r}. Set max if more is better, else min.",
                task=reference,
                option="direction",
                value=str(metric.direction),
                choices=("max", "min"),
            )
    names = [metric.name for metric in metrics]
    problem = metric_name_problem(names)
    if problem:
        message = f"task {reference!r}: {problem}. Rename the metric."
        raise UserError("bad-plugin", message, task=reference, option="metrics", value=tuple(map(str, names)))
