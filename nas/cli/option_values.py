"""An option of one value is given once, and no option nothing.

Of two values the command line's parser would take the last and say nothing, and an empty one for the default, or for
the folder that it is run in.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from nas.cli.config_file import command_of
from search_spaces.support.errors import UserError


def check_option_values(words: Sequence[str], commands: Mapping[str, Any]) -> None:
    """Raise UserError where the words of a command line give an option nothing, or twice one that holds one value.

    `commands` are typer's, by their names.
    """
    command = command_of(words, commands)
    if command is None:
        return
    options = [parameter for parameter in commands[command].params if parameter.param_type_name == "option"]
    options_by_flag = {flag: parameter for parameter in options if not parameter.is_flag for flag in parameter.opts}
    pairs = [(options_by_flag[flag], value) for flag, value in _option_values(words, options_by_flag)]
    for option, value in pairs:
        if not value.strip(" ,"):
            message = f"{option.opts[0]} was given nothing. Say what, or leave it out."
            raise UserError("missing-value", message, option=option.opts[0], value=value)
    uses = Counter(option.opts[0] for option, _ in pairs if not option.multiple)
    for name, times in uses.items():
        if times > 1:
            message = f"{name} is given once, got it {times} times. Give all of it in one."
            raise UserError("duplicate", message, option=name, value=name, times=times)


def _option_values(words: Sequence[str], flags: Collection[str]) -> Iterator[tuple[str, str]]:
    """The options before `--` that hold a value, with it: --output FILE, --output=FILE, -o FILE, -oFILE."""
    rest = takewhile(lambda word: word != "--", words)
    for word in rest:
        flag = word.partition("=")[0] if word.startswith("--") else word[:2]
        if flag in flags and word != flag:
            yield flag, word[len(flag) :].removeprefix("=")
        elif flag in flags and (value := next(rest, None)) is not None:  # which may begin with a dash
            yield flag, value
