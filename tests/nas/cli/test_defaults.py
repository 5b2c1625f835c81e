"""A command's default is the API function's, so that the command line and Python do the same."""

import ast
import inspect
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import nas
from grouped import grouped
from nas.cli.main import app

APART = {"dashboard", "front", "effects", "list", "report", "reproduce", "results"}
"""Commands that no function of the API is called like."""


def defaults(function: Any) -> dict[str, Any]:
    """The parameters with their defaults; several values are a tuple."""
    found = {name: one.default for name, one in signature(function).parameters.items()}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def test_commands_have_the_defaults_of_the_functions() -> None:
    commands = {one.name: one.callback for one in app.registered_commands}
    assert commands.keys() >= APART
    functions = {name: {"import": "import_rows"}.get(name, name.replace("-", "_")) for name in commands.keys() - APART}
    of_load = dict.fromkeys(["front", "effects", "report", "results"], "load")
    with grouped() as case:
        for name, function in {**functions, **of_load}.items():
            with case(name):
                typed, called = defaults(commands[name]), defaults(getattr(nas, function))
                assert called.keys() <= typed.keys()
                assert {one: typed[one] for one in called} == called
                assert name in of_load or any(value is Parameter.empty for value in typed.values())


def arguments(command: Callable[..., None], function: str) -> dict[str, set[str]]:
    """What a command passes to `nas.<function>`: parameter -> the names that stand in its value."""
    calls = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(command)))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"nas.{function}"
    ]
    (call,) = calls
    values = dict(zip(signature(getattr(nas, function)).parameters, call.args, strict=False))
    values |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    return {name: {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} for name, value in values.items()}


def test_commands_pass_every_option_on() -> None:
    commands = {one.name: one.callback for one in app.registered_commands}
    with grouped() as case:
        for name in commands.keys() - APART:
            function = "import_rows" if name == "import" else name.replace("-", "_")
            with case(name):
                passed = arguments(commands[name], function)
                assert passed.keys() == signature(getattr(nas, function)).parameters.keys()
                assert {one: names for one, names in passed.items() if one not in names} == {}
