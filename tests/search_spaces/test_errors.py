"""What users are told: one line each."""

import runpy
import warnings
from pathlib import Path

import pytest

from search_spaces.errors import Notice, UserError, place_of, reason_of, show_notices, unknown


def test_an_unknown_name_comes_with_its_nearest_or_with_all() -> None:
    assert str(unknown("task", "digits-vti", ["digits-vit", "moons"])).endswith("Did you mean 'digits-vit'?")
    assert str(unknown("task", "qqqq", ["b", "a"])).endswith("Choose from: a, b.")


def test_what_begins_as_it_was_typed_is_nearer_than_what_looks_alike() -> None:
    assert str(unknown("objective", "acc", ["macs", "accuracy"])).endswith("Did you mean 'accuracy'?")


def test_case_is_no_difference_but_of_two_names_the_one_that_was_typed_comes_first() -> None:
    assert str(unknown("topology", "MHC", ["mhc", "rmt"])).endswith("Did you mean 'mhc'?")
    assert str(unknown("topology", "RESNTE", ["resnet"])).endswith("Did you mean 'resnet'?")
    assert str(unknown("metric", "al", ["Alpha", "alpha2"])).endswith("Did you mean 'alpha2'?")


def test_an_unknown_name_says_of_what_it_would_be() -> None:
    said = str(unknown("preset", "papr", ["paper"], of="task 'glue'"))
    assert said == "unknown preset 'papr' of task 'glue'. Did you mean 'paper'?"


def test_the_reason_of_a_users_error_is_its_line() -> None:
    assert reason_of(UserError("there is no text. Give other --data.")) == "there is no text. Give other --data."


@pytest.mark.filterwarnings("always")
def test_a_notice_is_a_line_and_another_warning_is_as_it_was(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *rest: others.append(str(message)))
    show_notices()
    warnings.warn("three documents are passed over", Notice, 1)
    warnings.warn("something else", UserWarning, 1)
    assert capsys.readouterr().err == "nas: three documents are passed over\n"
    assert others == ["something else"]


def raised_by(path: Path, text: str) -> BaseException:
    """What running a file raises."""
    path.write_text(text)
    try:
        runpy.run_path(str(path))
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\nx.y\n", 2),
        ("import json\n\njson.loads('[')\n", 3),  # the standard library raises, this file is to blame
        ("import torch\ntorch.zeros(2) @ torch.zeros(3, 3)\n", 2),  # so is it where torch raises
        ("from search_spaces.architecture import Architecture\nArchitecture(depth=0, width=1, hidden=1)\n", 2),
        ("def f():\n    raise KeyError('x')\n\nf()\n", 2),
        ("x = 1\ny = = 2\n", 2),
    ],
)
def test_the_place_of_an_error_is_the_innermost_line_of_the_users(text: str, line: int, tmp_path: Path) -> None:
    error = raised_by(tmp_path / "theirs.py", text)
    assert place_of(error) == f"{tmp_path / 'theirs.py'}, line {line}"
    assert reason_of(error).endswith(f"({tmp_path / 'theirs.py'}, line {line})")
    assert "\n" not in reason_of(error)


@pytest.mark.parametrize(("package", "to_blame"), [("theirs", "theirs"), ("torch", "caller")])
def test_an_installed_package_is_to_blame_unless_everybody_builds_on_it(
    package: str, to_blame: str, tmp_path: Path
) -> None:
    (tmp_path / "site-packages" / package).mkdir(parents=True)
    inner = tmp_path / "site-packages" / package / "inner.py"
    inner.write_text("1 / 0\n")
    error = raised_by(tmp_path / "caller.py", f"import runpy\nrunpy.run_path({str(inner)!r})\n")
    assert place_of(error) == (f"{inner}, line 1" if to_blame == package else f"{tmp_path / 'caller.py'}, line 2")


def test_a_file_below_the_working_directory_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert place_of(raised_by(tmp_path / "theirs.py", "1 / 0\n")) == "theirs.py, line 1"


def test_an_error_without_a_place_of_theirs_has_none() -> None:
    assert place_of(ValueError("never raised")) is None
    assert reason_of(ValueError("never raised\nwith a story")) == "ValueError: never raised"
