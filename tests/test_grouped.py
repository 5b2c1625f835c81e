import pytest

from grouped import grouped


def test_every_case_runs_and_failures_are_named() -> None:
    blocks = []

    def run_three() -> None:
        with grouped() as case:
            for name in ("one", "two", "three"):
                with case(name):
                    blocks.append(name)
                    assert name == "two"

    with pytest.raises(BaseExceptionGroup) as caught:
        run_three()
    assert blocks == ["one", "two", "three"]
    assert [error.__notes__ for error in caught.value.exceptions] == [["case: one"], ["case: three"]]


def test_a_block_without_cases_fails() -> None:
    with pytest.raises(AssertionError), grouped():
        pass


def test_an_error_outside_of_a_case_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError), grouped():
        raise KeyError
