"""Commands and API functions have the same defaults."""

import ast
import inspect
from collections.abc import Callable
from dataclasses import asdict
from inspect import Parameter, signature
from typing import Any

import nas
from grouped import grouped
from nas.cli.main import app
from nas.samplers.rungs import Rungs
from nas.workers.resources import Resources

WITHOUT_FUNCTION = {"dashboard", "front", "effects", "list", "report", "reproduce", "results"}
"""Commands without a function of the same name in the API."""


PRINTING = {"format", "output", "plot", "curves"}
"""Options of what is printed or drawn."""


def defaults(function: Any) -> dict[str, Any]:
    """The parameters with their defaults; several values are a tuple, and groups are their options."""
    values = dict[str, Any]()
    for name, parameter in signature(function).parameters.items():
        default = parameter.default
        if isinstance(default, Rungs):
            values |= asdict(default) | {"rungs": default.number}
            del values["number"]
        elif isinstance(default, Resources):
            values |= asdict(default)
        else:
            values[name] = tuple(default) if isinstance(default, list) else default
    return values


def test_commands_have_the_defaults_of_the_functions() -> None:
    commands = {command.name: command.callback for command in app.registered_commands}
    assert commands.keys() >= WITHOUT_FUNCTION
    functions = {
        name: {"import": "import_rows"}.get(name, name.replace("-", "_")) for name in commands.keys() - WITHOUT_FUNCTION
    }
    of_load = dict.fromkeys(["front", "effects", "report", "results"], "load")
    with grouped() as case:
        for name, function in {**functions, **of_load}.items():
            with case(name):
                of_command, of_function = defaults(commands[name]), defaults(getattr(nas, function))
                assert of_function.keys() <= of_command.keys()
                assert {option: of_command[option] for option in of_function} == of_function
                assert name in {*of_load, "export"} or any(value is Parameter.empty for value in of_command.values())


def names_in(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def arguments(command: Callable[..., None], function: str) -> dict[str, set[str]]:
    """The arguments that a command passes to `nas.<function>`: parameter -> the names in its value."""
    nodes = list(ast.walk(ast.parse(inspect.getsource(command))))
    (call,) = (node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == f"nas.{function}")
    values = dict(zip(signature(getattr(nas, function)).parameters, call.args, strict=False))
    values |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    local = {ast.unparse(node.targets[0]): names_in(node.value) for node in nodes if isinstance(node, ast.Assign)}
    return {
        name: names_in(value).union(*map(local.get, names_in(value) & local.keys())) for name, value in values.items()
    }


def test_commands_pass_every_option_on() -> None:
    commands = {command.name: command.callback for command in app.registered_commands}
    with grouped() as case:
        for name in commands.keys() - WITHOUT_FUNCTION:
            function = "import_rows" if name == "import" else name.replace("-", "_")
            with case(name):
                passed, options = arguments(commands[name], function), signature(commands[name]).parameters.keys()
                assert passed.keys() == signature(getattr(nas, function)).parameters.keys()
                assert {option: names for option, names in passed.items() if option in options - names} == {}
                assert set().union(*passed.values()) >= options - PRINTING
