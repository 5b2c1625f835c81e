"""A check that no option is blank, and that options with one value are given once.

Otherwise the parser takes the last of two values without a message. It takes a blank one for the default, or for the
current folder.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from nas.cli.config_file import command_of
from search_spaces.support.errors import UserError


def check_option_values(words: Sequence[str], commands: Mapping[str, Any]) -> None:
    """Raise UserError if an option has a blank value, or an option with one value is given twice.

    `commands` are Typer's, by name.
    """
    command = command_of(words, commands)
    if command is None:
        return
    options = [parameter for parameter in commands[command].params if parameter.param_type_name == "option"]
    options_by_flag = {flag: parameter for parameter in options if not parameter.is_flag for flag in parameter.opts}
    pairs = [(options_by_flag[flag], value) for flag, value in _option_values(words, options_by_flag)]
    for option, value in pairs:
        if not value.strip(" ,"):
            message = f"{option.opts[0]} needs a value. Give one, or leave it out."
            raise UserError("missing-value", message, option=option.opts[0], value=value)
    uses = Counter(option.opts[0] for option, _ in pairs if not option.multiple)
    for name, times in uses.items():
        if times > 1:
            message = f"{name} must be given once, got it {times} times. Combine the values."
            raise UserError("duplicate", message, option=name, value=name, times=times)


def _option_values(words: Sequence[str], flags: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the options before `--` with their values: --output FILE, --output=FILE, -o FILE, -oFILE."""
    rest = takewhile(lambda word: word != "--", words)
    for word in rest:
        flag = word.partition("=")[0] if word.startswith("--") else word[:2]
        if flag in flags and word != flag:
            yield flag, word[len(flag) :].removeprefix("=")
        elif flag in flags and (value := next(rest, None)) is not None:  # a value may start with a dash
            yield flag, value
