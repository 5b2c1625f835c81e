"""What users are told: one line each."""

import warnings

import pytest

from search_spaces.errors import Notice, show_notices, unknown


def test_an_unknown_name_comes_with_its_nearest_or_with_all() -> None:
    assert str(unknown("task", "digits-vti", ["digits-vit", "moons"])).endswith("Did you mean 'digits-vit'?")
    assert str(unknown("task", "qqqq", ["b", "a"])).endswith("Choose from: a, b.")


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
