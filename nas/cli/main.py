"""Entry point of the `nas` command: runs it and turns errors into one line and an exit status. Starts without torch."""

import errno
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer
from typer.main import get_command

import nas
from nas.cli.command import app
from nas.cli.config_file import command_of, expand_config_file
from nas.cli.option_values import check_option_values
from nas.environment.debugging import DEBUG, show_traceback
from nas.workers.orphan_threads import STUCK_THREADS
from search_spaces.support.errors import Kind, UserError, foreign_location, nearest, printable, reason_of, show_notices
from search_spaces.support.logger import set_level
from search_spaces.support.quiet_timer import OUTPUT_TIMER

# The order of imports is the order of `nas --help`.
# isort: off
from nas.cli.commands import searches, networks, files, rows, overview  # noqa: F401
# isort: on

_UsageError: Any = typer.BadParameter.__mro__[1]
"""The base class of Typer's usage errors, which has no public name."""

_KINDS_OF_MISUSE: Mapping[str, Kind] = {"NoSuchOption": "unknown-name", "MissingParameter": "missing-value"}
"""Class name of a usage error -> kind; these classes have no public names. All others are "bad-syntax"."""

_UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)


def main() -> None:
    """Run the command line; a user's error, or one in a plug-in, prints one line and exits with status 2."""
    _open_standard_streams()
    show_notices()
    with OUTPUT_TIMER.accumulate():
        status = _status(_run)
    status = _status(_flush) or status
    if STUCK_THREADS:
        os._exit(status)
    sys.exit(status)


def _open_standard_streams() -> None:
    """Open /dev/null for a closed standard input or error, so that no other file gets its number."""
    for number in (0, 2):
        try:
            os.fstat(number)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
    if sys.stderr is None:
        sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115  # never closed


def _run() -> int:
    """Run the command of the command line and return its exit status."""
    if sys.stdout is None:
        message = "standard output is closed. Keep it open, or redirect it to /dev/null."
        raise UserError("unwritable", message, option="stdout")
    group = get_command(app)
    commands = vars(group)["commands"]
    words = expand_config_file(sys.argv[1:], commands)
    check_option_values(words, commands)
    try:
        return group(args=words, prog_name="nas", standalone_mode=False) or 0
    except _UsageError as error:
        if not error.format_message().strip():  # `nas` alone, which has printed its help
            return 2
        raise _usage_error(error, words, commands) from error


def _usage_error(error: Any, words: Sequence[str], commands: Mapping[str, Any]) -> UserError:
    """Convert Typer's usage error to a UserError with a message of one line."""
    command = error.ctx.command_path if error.ctx else "nas"
    text = " ".join(error.format_message().split())
    end = "" if text.endswith(("?", ".")) else "."
    message = f"{text}{end} See `{command} --help`."
    parameter, flag = getattr(error, "param", None), getattr(error, "option_name", None)
    if parameter is None and flag is None:  # too many arguments, or no such command
        if (name := command_of(words, commands)) is not None:
            return _extra_argument(text, command, commands[name], words)
        value = next((word for word in words if not word.startswith("-")), None)
        return UserError("unknown-name", message, option="command", value=value, choices=tuple(commands))
    if parameter is not None:
        flag = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0]
    near = next(iter(getattr(error, "possibilities", None) or ()), None)
    kind = _KINDS_OF_MISUSE.get(type(error).__name__, "bad-syntax")
    fields = {"option": flag, "command": command, "nearest": near}
    if type(error) is typer.BadParameter and parameter is not None:
        kind, limits = _limits(error, parameter.type, words)
        fields |= limits
    return UserError(kind, message, **fields)


def _extra_argument(text: str, command: str, parser: Any, words: Sequence[str]) -> UserError:
    """Return the error for arguments that a command does not take; one alone may be a study or a table."""
    value = text.partition(" (")[2].removesuffix(")")  # Typer names them only in its sentence
    flags = {flag for parameter in parser.params for flag in parameter.opts}
    remedy = f"See `{command} --help`."
    if {"--study", "--from"} <= flags and value in words:
        remedy = f"For a study give --study {shlex.quote(value)}, for a table --from {shlex.quote(value)}."
    message = f"`{command}` takes no argument {value!r}. {remedy}"
    return UserError("bad-syntax", message, command=command, value=value)


def _limits(error: Any, parameter_type: Any, words: Sequence[str]) -> tuple[Kind, dict[str, Any]]:
    """Return the kind of error of a rejected value, with the value and its limits."""
    texts = (word.partition("=")[2] if word.startswith("--") and "=" in word else word for word in words)
    value = next((text for text in texts if _rejects(error, parameter_type, text)), None)
    if (choices := getattr(parameter_type, "choices", None)) is not None:
        near = None if value is None else nearest(value, sorted(choices))
        return "unknown-name", {"value": value, "choices": (*choices,), "nearest": near}
    if getattr(parameter_type, "min", None) is not None and "range x" in error.message:
        return "out-of-range", {"value": value, "least": parameter_type.min}
    return "bad-syntax", {"value": value}


def _rejects(error: Any, parameter_type: Any, text: str) -> bool:
    """Return whether Typer rejects this text with the same error."""
    try:
        parameter_type.convert(text, error.param, error.ctx)
    except _UsageError as again:
        return bool(again.message == error.message)
    return False


def _status(work: Callable[[], int | None]) -> int:
    """Run `work` and return its exit status; errors are printed."""
    try:
        return work() or 0
    except SystemExit as end:
        if foreign_location(end) is None or isinstance(end.__context__, BrokenPipeError):  # raised by Typer or Rich
            return int(end.code or 0)
        return _print_error(end, f"{reason_of(end)}: a plug-in exited the program.")
    except UserError as error:
        return _print_error(error, str(error))
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None:
            return _discard_stdout(error)
        if foreign_location(error) is None:  # our own bug: keep the traceback
            raise
        return _print_error(error, f"{reason_of(error)}. `nas --debug` prints the traceback.")


def _print_error(error: BaseException, line: str) -> int:
    show_traceback(error)
    print(printable(f"nas: {line}"), file=sys.stderr)
    return 2


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _discard_stdout(error: OSError) -> int:
    """Discard what could not be printed, so that the interpreter does not try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if error.errno == errno.EPIPE:  # `| head` has closed the pipe
        return 1  # as Typer does
    return _print_error(error, f"standard output cannot be written: {error.strerror}.")


def _print_version(show: bool) -> None:
    if show:
        typer.echo(f"nas {nas.__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    quiet: bool = typer.Option(False, "-q", "--quiet", help="Print only results and errors."),
    verbose: bool = typer.Option(False, "-v", "--verbose", help="Also print when each evaluation starts and ends."),
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_print_version, is_eager=True),
) -> None:
    if debug:
        os.environ[DEBUG] = "1"
    if quiet or verbose:
        set_level("WARNING" if quiet else "DEBUG")
