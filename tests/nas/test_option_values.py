"""An option that holds one value is given once, and no option nothing."""

import sys

import pytest

from nas.cli import main


def said(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    monkeypatch.setattr(sys, "argv", ["nas", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "digits-vit", "--set", "lr=1e-3", "--set", "batch=8"],
        ["evaluate", "digits-vit", "--set=lr=1e-3", "--set", "batch=8"],
        ["results", "x.db", "--where", "depth=3", "--where", "seed=1"],
        ["results", "--order-by", "-flops", "-o", "a.csv", "--output", "b.csv"],
        ["results", "-oa.csv", "-ob.csv"],
    ],
)
def test_twice_is_a_line(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, err = said(words, monkeypatch, capsys)
    assert code == 2
    assert "is given once, got it 2 times" in err
    assert len(err.strip().splitlines()) == 1


def test_options_of_several_values_may_stand_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["search", "digits-vit", "--axis", "depth=1:2", "--axis", "nothing=1:2", "--preset", "nowhere"]
    code, err = said(words, monkeypatch, capsys)
    assert code == 2
    assert "is given once" not in err


def test_what_an_option_holds_is_no_option(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["results", "--from", "nowhere.jsonl", "--order-by", "-order", "-o", "a.csv", "--format", "csv"]
    code, err = said(words, monkeypatch, capsys)
    assert code == 2
    assert "is given once" not in err


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["search", "digits-vit", "--space", ""], "--space"),
        (["evaluate", "digits-vit", "--save", ""], "--save"),
        (["evaluate", "digits-vit", "--start="], "--start"),
        (["evaluate", "digits-vit", "--set", " , "], "--set"),
        (["results", "--from", "tables", "-o", ""], "--output"),
        (["search", "digits-vit", "--axis", "depth=1:2", "--axis", ""], "--axis"),
    ],
)
def test_nothing_is_a_line(
    words: list[str], flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, err = said(words, monkeypatch, capsys)
    assert (code, err) == (2, f"nas: {flag} was given nothing. Say what, or leave it out.\n")
