"""Writing of a template under a new name."""

import builtins
import importlib.util
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path
from typing import Literal

from search_spaces.support.errors import UserError
from search_spaces.support.files import check_folder, unwritable
from search_spaces.support.registry import Registry

_REGISTRIES = {"task": Registry("nas.tasks", "task"), "topology": Registry("nas.topologies", "topology")}
"""Used for their names only; importing them from tasks.base would load torch."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MODULE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST = 60


@dataclass(frozen=True)
class NewFile:
    """A file written from a template.

    Attributes:
        file: Its path.
        commands: Commands to run next, each with its purpose.
    """

    file: Path
    commands: Sequence[tuple[str, str]]


def class_name_of(name: str) -> str:
    """Return the class name for a task or topology: "two-moons" gives TwoMoons."""
    return "".join(part.capitalize() for part in name.split("-"))


def write_template(kind: Literal["task", "topology"], name: str, output: str | Path | None) -> Path:
    """Write the template of that kind under a name, to `output` or a file called after the name.

    Raises:
        UserError: An invalid name, or a file that cannot be imported by its name, exists or cannot be written.
    """
    template = files("nas.scaffold.templates").joinpath(f"{kind}.py").read_text(encoding="utf-8")
    _check_name(kind, name, template)
    file = Path(output) if output is not None else Path(f"{name.replace('-', '_')}.py")
    _check_file(file)
    _write(file, _fill_template(template, {
        f"New{kind.capitalize()}": class_name_of(name), f"new-{kind}": name, f"new_{kind}": file.stem}))  # fmt: skip
    return file


def shell_quote(file: Path) -> str:
    """Quote a path for a shell; a leading dash is not read as an option."""
    return shlex.quote(f"./{file}" if str(file).startswith("-") else str(file))


def _check_name(kind: str, name: str, template: str) -> None:
    registry = _REGISTRIES[kind]
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        rule = f"lower-case letters, digits and single dashes, begin with a letter and have at most {_LONGEST}"
        message = f"the name of a {kind} must be {rule} characters, got {name!r:.80}. Give another, such as my-{kind}."
        raise UserError("bad-syntax", message, option="NAME", value=name, most=_LONGEST)
    if kind == "topology" and name == "recipe":
        message = "a topology named 'recipe' would clash with the recipe's axes. Give another name."
        raise UserError("conflict", message, option="NAME", value=name)
    if name in registry.names():
        whose = "this project" if registry.is_builtin(name) else "an installed package"
        message = f"{kind} {name!r} exists already in {whose}. Give another name."
        raise UserError("exists", message, option="NAME", value=name, ours=registry.is_builtin(name))
    class_name = class_name_of(name)
    if iskeyword(class_name) or hasattr(builtins, class_name) or re.search(rf"\b{class_name}\b", template):
        message = f"{kind} {name!r} would be class {class_name}, a name that is taken. Give another name."
        raise UserError("conflict", message, option="NAME", value=name, class_name=class_name)


def _check_file(file: Path) -> None:
    if file.suffix != ".py" or not _MODULE.fullmatch(file.stem) or iskeyword(file.stem):
        message = f"--output must be a module, LETTERS_AND_DIGITS.py, got {str(file)!r}. Give another file."
        if file.suffix != ".py":
            raise UserError("unsupported", message, option="--output", path=str(file), choices=(".py",))
        raise UserError("bad-syntax", message, option="--output", path=str(file))
    if file.exists() or file.is_symlink():
        raise _is_there(file)
    check_folder(file, "--output")
    spec = importlib.util.find_spec(file.stem)  # imports nothing
    if file.stem in sys.stdlib_module_names or (spec and spec.origin):
        message = f"{file} would shadow the module {file.stem!r}. Give another --output."
        raise UserError("conflict", message, option="--output", path=str(file), module=file.stem)


def _is_there(file: Path) -> UserError:
    message = f"{file} exists and is not overwritten. Give another --output."
    return UserError("exists", message, option="--output", path=str(file))


def _fill_template(template: str, names: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, names)), lambda match: names[match[0]], template)


def _write(file: Path, text: str) -> None:
    """Write a file that does not exist, completely or not at all."""
    try:
        with file.open("x", encoding="utf-8") as stream:
            try:
                stream.write(text)
                stream.flush()
            except OSError:
                file.unlink()
                raise
    except FileExistsError as error:
        raise _is_there(file) from error
    except OSError as error:
        raise unwritable(file, error, "--output") from error
