"""An option of one value may be given once, and no option may be empty."""

from collections.abc import Sequence

from typer.main import get_command

from command_line import Command
from expect import raises
from grouped import grouped
from nas.cli.main import app
from nas.cli.option_values import check_option_values

COMMANDS = vars(get_command(app))["commands"]


def check(words: Sequence[str]) -> None:
    check_option_values(words, COMMANDS)


def test_option_given_twice_is_an_error() -> None:
    lines = [
        (["evaluate", "digits-vit", "--set", "lr=1e-3", "--set", "batch=8"], "--set"),
        (["evaluate", "digits-vit", "--set=lr=1e-3", "--set", "batch=8"], "--set"),
        (["results", "x.db", "--where", "depth=3", "--where", "seed=1"], "--where"),
        (["results", "--order-by", "-flops", "-o", "a.csv", "--output", "b.csv"], "--output"),
        (["results", "-oa.csv", "-ob.csv"], "--output"),
    ]
    with grouped() as case:
        for words, flag in lines:
            with case(" ".join(words)), raises("duplicate", option=flag, times=2):
                check(words)


def test_option_of_several_values_may_be_given_twice() -> None:
    check(["search", "digits-vit", "--axis", "depth=1:2", "--axis", "nothing=1:2"])


def test_value_of_an_option_is_not_taken_for_an_option() -> None:
    check(["results", "--from", "nowhere.jsonl", "--order-by", "-order", "-o", "a.csv", "--format", "csv"])


def test_empty_option_is_an_error() -> None:
    lines = [
        (["search", "digits-vit", "--space", ""], "--space", ""),
        (["evaluate", "digits-vit", "--save", ""], "--save", ""),
        (["evaluate", "digits-vit", "--start="], "--start", ""),
        (["evaluate", "digits-vit", "--set", " , "], "--set", " , "),
        (["results", "--from", "tables", "-o", ""], "--output", ""),
        (["search", "digits-vit", "--axis", "depth=1:2", "--axis", ""], "--axis", ""),
    ]
    with grouped() as case:
        for words, flag, value in lines:
            with case(" ".join(words)), raises("missing-value", option=flag, value=value):
                check(words)


def test_command_checks_its_options_first(command: Command) -> None:
    result = command("results", "--from", "nowhere.jsonl", "-oa.csv", "-ob.csv")
    result.assert_error("duplicate", option="--output", times=2)
