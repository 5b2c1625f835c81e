"""The Typer application that commands register with, and what they have in common."""

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from signal import SIGINT
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperOption
from typer.main import get_click_type
from typer.models import OptionInfo

from nas.cli.config_file import SAVE, save
from nas.environment.signals import Termination, termination_signals
from search_spaces.support.errors import UserError

app = typer.Typer(
    name="nas",
    help="Search network architectures under hard budgets, and query the results.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

_Function = TypeVar("_Function", bound=Callable[..., None])


class Command(TyperCommand):
    """A command with --save-config that rejects blank arguments and sets the exit status after a signal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params.append(
            TyperOption(
                param_decls=[SAVE, "--save-config"],
                type=get_click_type(annotation=Path, parameter_info=OptionInfo()),
                metavar="FILE.toml",
                help="Save these options; reuse them with @FILE.",
            )
        )

    def invoke(self, ctx: Any) -> Any:
        """Run the command, after --save-config and the check of arguments."""
        file = ctx.params.pop(SAVE)
        try:
            with termination_signals():
                if file is not None:
                    save(ctx, Path(file))
                self._check_not_blank(ctx)
                return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            number = interrupt.number if isinstance(interrupt, Termination) else SIGINT
            trains = {"preset", "storage"} <= ctx.params.keys()
            hint = "; run the same command to resume" if trains else ""
            print(f"nas: ended by {number.name}{hint}.", file=sys.stderr)
            raise typer.Exit(128 + number) from None

    def _check_not_blank(self, ctx: Any) -> None:
        """Raise UserError for an argument that is blank or only commas; `nas.cli.option_values` checks options."""
        for parameter in (parameter for parameter in self.params if parameter.param_type_name == "argument"):
            value = ctx.params[parameter.name]
            texts = value if isinstance(value, list | tuple) else [value]
            if value != parameter.default and not all(str(text).strip(" ,") for text in texts):
                name = str(parameter.name).upper()
                raise UserError("missing-value", f"{name} needs a value. Give one, or leave it out.", option=name)


class Group(StrEnum):
    """The groups of commands in `nas --help`."""

    START = "Start here"
    TRAIN = "Train and compare"
    MEASURE = "Count and measure"
    RESULTS = "Results and networks"
    EXTEND = "Extend"
    PAPERS = "Papers and data"


def command(name: str, group: Group) -> Callable[[_Function], _Function]:
    """Register a function as the command `name`; its docstring is the help text."""
    return app.command(name, cls=Command, rich_help_panel=group.value)
