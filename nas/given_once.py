"""An option of one value is given once: of two, the command line's parser would take the last and say nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence
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
    names = {flag: one.opts[0] for one in options if not (one.multiple or one.is_flag) for flag in one.opts}
    flags = (word.partition("=")[0] for word in takewhile(lambda word: word != "--", words))
    for name, times in Counter(names[flag] for flag in flags if flag in names).items():
        if times > 1:
            raise UserError(
                f"{name} is given once, got it {times} times. Leave one out; where it takes several values, "
                "they go in one, with commas."
            )
