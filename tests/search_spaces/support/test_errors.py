"""Errors and notices: kinds, fields, one line each, and locations."""

import pickle
import runpy
import warnings
from pathlib import Path

import pytest

from expect import check, raises
from search_spaces.support.errors import (
    KINDS,
    ContractError,
    Notice,
    UserError,
    cause_fields,
    check_at_least,
    foreign_location,
    nearest,
    number_error_kind,
    reason_of,
    show_notices,
    unknown_name_error,
    value_fields,
)


class Refusal(UserError):
    """A subclass as in other packages."""


def test_kinds_are_distinct_words() -> None:
    assert len(KINDS) == len(set(KINDS)) > 20
    assert all(kind.replace("-", "").islower() for kind in KINDS)


def test_an_error_has_a_kind_a_message_and_fields() -> None:
    error = UserError("out-of-range", "--trials must be at least 1, got 0.", option="--trials", value=0)
    assert isinstance(error, ValueError)
    assert str(error) == "--trials must be at least 1, got 0."
    assert (error.kind, error.fields) == ("out-of-range", {"option": "--trials", "value": 0})
    assert UserError("failed", "It failed.").fields == {}


def test_errors_and_notices_survive_pickling() -> None:
    fields = {"option": "--trials", "value": 0, "choices": (1, 2)}
    for cls in (UserError, Refusal, Notice):
        error = cls("out-of-range", "--trials must be 1 or 2, got 0.", **fields)
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is cls
        assert (copy.kind, copy.fields, str(copy)) == (error.kind, error.fields, str(error))


def test_a_contract_error_names_its_rule_and_survives_pickling() -> None:
    error = ContractError("params-are-counted", "count says 0 parameters, there are 6", said=0, counted=6)
    assert isinstance(error, AssertionError)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is ContractError
    assert (copy.check, copy.fields, str(copy)) == (error.check, {"said": 0, "counted": 6}, str(error))


def test_error_of_an_unknown_name_lists_the_nearest_or_all() -> None:
    error = unknown_name_error("task", "digits-vti", ["digits-vit", "moons"])
    check(error, "unknown-name", option="task", value="digits-vti", choices=("digits-vit", "moons"))
    assert error.fields["nearest"] == "digits-vit"
    assert "'digits-vit'" in str(error)
    none = unknown_name_error("task", "qqqq", ["b", "a"])
    check(none, "unknown-name", option="task", value="qqqq", choices=("a", "b"), nearest=None)
    assert "a, b" in str(none)


def test_prefix_match_is_nearer_than_a_similar_name() -> None:
    assert nearest("acc", ["accuracy", "macs"]) == "accuracy"


def test_nearness_ignores_case_and_then_prefers_the_same_case() -> None:
    assert nearest("MHC", ["mhc", "rmt"]) == "mhc"
    assert nearest("RESNTE", ["resnet"]) == "resnet"
    assert nearest("al", ["Alpha", "alpha2"]) == "alpha2"


def test_error_of_an_unknown_name_has_its_context() -> None:
    error = unknown_name_error("preset", "papr", ["paper"], of="task 'glue'", task="glue")
    check(error, "unknown-name", option="preset", value="papr", nearest="paper", task="glue")
    assert "task 'glue'" in str(error)
    other = unknown_name_error("architecture field", "dept", ["depth"], option="field")
    check(other, "unknown-name", option="field", value="dept", choices=("depth",), nearest="depth")
    assert "architecture field" in str(other)


def test_at_least_accepts_the_minimum() -> None:
    check_at_least("--trials", 1, 1)
    check_at_least("--trials", None, 1)
    with raises("out-of-range", option="--trials", value=0, least=1) as caught:
        check_at_least("--trials", 0, 1)
    assert str(caught.value) == "--trials must be at least 1, got 0."
    with raises("out-of-range", option="k", value=0, least=1) as caught:
        check_at_least("k", 0, 1, "Leave it out.")
    assert str(caught.value) == "k must be at least 1, got 0. Leave it out."


def test_an_error_has_the_fields_of_its_cause() -> None:
    inner = UserError("too-large", "it is too large.", path="x", size=3)
    assert cause_fields(inner) == {"path": "x", "size": 3, "cause": "too-large"}
    assert cause_fields(KeyError("x")) == {"cause": "KeyError"}


def test_an_error_in_user_code_has_its_location(tmp_path: Path) -> None:
    error = raised_by(tmp_path / "theirs.py", "1 / 0\n")
    assert cause_fields(error) == {"cause": "ZeroDivisionError", "where": f"{tmp_path / 'theirs.py'}, line 1"}


def test_errors_of_nested_values_show_their_type() -> None:
    assert value_fields(None) == {"value": None}
    assert value_fields("x") == {"value": "x"}
    assert value_fields([1]) == {"type": "list"}


def test_numbers_are_out_of_range_and_other_values_of_wrong_type() -> None:
    assert [number_error_kind(value) for value in (1, 0.5)] == 2 * ["out-of-range"]
    assert [number_error_kind(value) for value in (True, "1", None)] == 3 * ["wrong-type"]
    assert [number_error_kind(v, whole=True) for v in (1, 0.5, True)] == ["out-of-range", "wrong-type", "wrong-type"]


def test_the_reason_of_a_user_error_is_its_line() -> None:
    line = "there is no text. Give other --data."
    assert reason_of(UserError("missing-data", line, option="--data")) == line


@pytest.mark.filterwarnings("always")
def test_a_notice_is_printed_as_one_line_and_other_warnings_as_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *arguments: lines.append(str(message)))
    show_notices()
    warnings.warn(Notice("skipped", "three documents are passed over"), stacklevel=1)
    warnings.warn("something else", UserWarning, 1)
    assert capsys.readouterr().err == "nas: three documents are passed over\n"
    assert lines == ["something else"]


def raised_by(path: Path, text: str) -> BaseException:
    """The exception of running a file."""
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
        ("import json\n\njson.loads('[')\n", 3),  # raised in the standard library, located here
        ("import torch\ntorch.zeros(2) @ torch.zeros(3, 3)\n", 2),  # also for torch
        (
            "from search_spaces import Architecture\nArchitecture(depth=0, width=1, hidden=1)\n",
            2,
        ),
        ("def f():\n    raise KeyError('x')\n\nf()\n", 2),
        ("x = 1\ny = = 2\n", 2),
    ],
)
def test_the_place_of_an_error_is_the_innermost_line_of_the_users_code(text: str, line: int, tmp_path: Path) -> None:
    error = raised_by(tmp_path / "theirs.py", text)
    assert foreign_location(error) == f"{tmp_path / 'theirs.py'}, line {line}"
    assert reason_of(error).endswith(f"({tmp_path / 'theirs.py'}, line {line})")
    assert "\n" not in reason_of(error)


@pytest.mark.parametrize(("package", "to_blame"), [("theirs", "theirs"), ("torch", "caller")])
def test_an_installed_package_is_to_blame_unless_it_is_a_common_library(
    package: str, to_blame: str, tmp_path: Path
) -> None:
    (tmp_path / "site-packages" / package).mkdir(parents=True)
    inner = tmp_path / "site-packages" / package / "inner.py"
    inner.write_text("1 / 0\n")
    error = raised_by(tmp_path / "caller.py", f"import runpy\nrunpy.run_path({str(inner)!r})\n")
    assert foreign_location(error) == (
        f"{inner}, line 1" if to_blame == package else f"{tmp_path / 'caller.py'}, line 2"
    )


def test_a_file_below_the_working_directory_has_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert foreign_location(raised_by(tmp_path / "theirs.py", "1 / 0\n")) == "theirs.py, line 1"


def test_an_error_outside_the_users_code_has_no_place() -> None:
    assert foreign_location(ValueError("never raised")) is None
    assert reason_of(ValueError("never raised\nwith a story")) == "ValueError: never raised"
