"""A door as a command: called with its options, and shown what it returns. The options: nas.cli.options."""

import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, getdoc, signature
from signal import SIGINT
from typing import Any

import typer
from typer.models import ArgumentInfo

from nas.cli.config_file import SAVE, save
from nas.cli.options import OPTIONS
from nas.environment.signals import Terminated, termination_signals
from nas.report.format import format_for
from search_spaces.support.errors import UserError

_SAVED = Parameter(SAVE, Parameter.KEYWORD_ONLY, default=None, annotation=OPTIONS[SAVE])


def command(
    door: Callable[..., Any], show: Callable[..., None], check: Callable[..., None] | None = None, **called: str
) -> Callable[..., None]:
    """A function for typer: call the door with its options, and show what it returns by those of `show`.

    `check` is given all options first, and raises what would else be said after hours. `called` names the option of a
    parameter where that has another name. The help is the door's docstring, or that of `show` where the door only
    opens what is shown.
    """
    own, shown = _parameters(door), _parameters(show)[1:]

    resume_hint = "; the same command goes on from here" if {"preset", "storage"} <= {one.name for one in own} else ""

    def run(context: typer.Context, **given: Any) -> None:
        file = given.pop(SAVE)
        try:
            with termination_signals():
                if file is not None:
                    save(context, file)
                _refuse_blank(arguments, given)
                if {"format", "output"} <= given.keys():
                    given["format"] = format_for(given["output"], given["format"])
                if check is not None:
                    check(**given)
                found = door(**{one.name: given[one.name] for one in own})
                show(found, **{one.name: given[one.name] for one in shown})
        except KeyboardInterrupt as asked:
            number = asked.number if isinstance(asked, Terminated) else SIGINT
            print(f"nas: ended by {number.name}{resume_hint}.", file=sys.stderr)
            raise typer.Exit(128 + number) from None

    each = {one.name: one for one in own}
    each |= {one.name: one for one in shown if one.name not in each}
    options = [_typed(one, OPTIONS[called.get(name, name)]) for name, one in each.items()]
    arguments = [one for one in options if isinstance(one.annotation.__metadata__[0], ArgumentInfo)]
    whole = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context), *options, _SAVED]
    run.__signature__ = Signature(whole)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {one.name: one.annotation for one in whole}
    about = show if door.__name__ == "load" else door
    run.__doc__ = (getdoc(about) or "").partition("\n\nRaises")[0]
    return run


def _refuse_blank(arguments: Sequence[Parameter], given: Mapping[str, Any]) -> None:
    """Raise UserError for an argument without text, or of commas alone. Of options nas.cli.option_values knows it."""
    for one in arguments:
        values = given[one.name] if isinstance(given[one.name], list) else [given[one.name]]
        if given[one.name] != one.default and any(isinstance(value, str) and not value.strip(" ,") for value in values):
            name = one.name.upper()
            raise UserError("missing-value", f"{name} was given nothing. Say what, or leave it out.", option=name)


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    return list(signature(function).parameters.values())


def _typed(parameter: Parameter, option: Any) -> Parameter:
    default = [] if parameter.default == () else parameter.default
    return parameter.replace(annotation=option, default=default, kind=Parameter.KEYWORD_ONLY)
