"""An option of one value is given once: of two, the command line's parser would take the last and say nothing."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from nas.run_file import command_of
from search_spaces.errors import UserError


def check_given_once(words: Sequence[str], commands: Mapping[str, Any]) -> None:
    """Raise UserError where the words of a command line give an option twice that holds one value.

    `commands` are typer's, by their names.
    """
    command = command_of(words, commands)
    if command is None:
        return
    options = [one for one in commands[command].params if one.param_type_name == "option"]
    valued = {flag: one for one in options if not one.is_flag for flag in one.opts}
    uses = Counter(valued[flag].opts[0] for flag in _flags(words, valued) if not valued[flag].multiple)
    for name, times in uses.items():
        if times > 1:
            raise UserError(f"{name} is given once, got it {times} times. Give all of it in one.")


def _flags(words: Sequence[str], valued: Collection[str]) -> Iterator[str]:
    """The options with a value among words, before `--`: of --output=FILE the part before =, of -oFILE one letter."""
    rest = takewhile(lambda word: word != "--", words)
    for word in rest:
        flag = word.partition("=")[0] if word.startswith("--") else word[:2]
        if flag in valued:
            yield flag
            if word == flag:
                next(rest, None)  # its value, which may begin with a dash
