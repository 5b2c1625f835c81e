"""A command's options in a TOML file: `nas search @run.toml` reads it, `--save-config run.toml` writes it.

Keys are flags without dashes and arguments' names in lower case; several values are a list.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from search_spaces.support.errors import UserError, unknown_name_error
from search_spaces.support.files import kind_of_read_error

SAVE = "save_config"
"""The parameter of --save-config, which files do not contain."""


def expand_config_file(words: Sequence[str], commands: Mapping[str, Any]) -> list[str]:
    """Replace @FILE by the words that the file stands for; options that are also typed are left out.

    `commands` are Typer's, by name.

    Raises:
        UserError: The file is missing, no TOML, or has an option that the command lacks.
    """
    command = command_of(words, commands)
    index = next((index for index, word in enumerate(words) if word.startswith("@") and len(word) > 1), None)
    if command is None or index is None or index < list(words).index(command):
        return list(words)
    flags = {word.partition("=")[0] for word in words}
    names = {
        _name(parameter): parameter for parameter in commands[command].params if parameter.name not in (SAVE, "help")
    }
    options, arguments = list[str](), dict[str, list[str]]()
    for name, value in _read(Path(words[index][1:])).items():
        if name not in names:
            raise unknown_name_error(f"option in {words[index][1:]}", name, names)
        parameter, values = names[name], _values(name, value, words[index][1:])
        if parameter.param_type_name == "argument":
            arguments[name] = values
        elif not flags & {*parameter.opts}:
            flag = parameter.opts[0]
            options += (
                [flag] * (value is True) if isinstance(value, bool) else [f"{flag}={element}" for element in values]
            )
    in_order = [word for name in names for word in arguments.get(name, [])]
    return [*words[:index], *in_order, *options, *words[index + 1 :]]


def command_of(words: Sequence[str], commands: Mapping[str, Any]) -> str | None:
    """Return the name of the command in a command line, or None."""
    return next((word for word in words if word in commands), None)


def save(context: typer.Context, file: Path) -> None:
    """Write the options and arguments that were typed.

    Raises:
        UserError: The file cannot be written.
    """
    import tomli_w

    record = {}
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        source = context.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE" and parameter.name != SAVE:
            record[_name(parameter)] = _plain(value)
    try:
        file.write_text(tomli_w.dumps(record), encoding="utf-8")
    except OSError as error:
        message = f"--save-config {file} cannot be written: {error.strerror}."
        raise UserError("unwritable", message, option="--save-config", path=str(file)) from error


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return (parameter.metavar or str(parameter.name)).rstrip(".").lower()
    return str(max(parameter.opts, key=len)).removeprefix("--")


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"{file} cannot be read: {error.strerror}. Give @FILE of an existing file."
        raise UserError(kind_of_read_error(error), message, path=str(file)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError("bad-file", f"{file} is not valid TOML: {error}.", path=str(file)) from error


def _values(name: str, value: Any, file: str) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(element, str | int | float) for element in values):
        message = f"{name} in {file} must be text, a number, true, false or a list of these, got {value!r:.60}."
        raise UserError("wrong-type", message, option=name, value=value, path=file)
    return [str(element) for element in values]


def _plain(value: Any) -> Any:
    """Return a value as a type that TOML has."""
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    return value if isinstance(value, bool | int | float) else str(value)
