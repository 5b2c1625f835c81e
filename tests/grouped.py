"""Many small checks in one test: all run, each failure is named, and there is at least one."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

Case = Callable[[str], AbstractContextManager[None]]


@contextmanager
def grouped() -> Iterator[Case]:
    """Collect the failures of the cases inside, and raise them together at the end.

    with grouped() as case:
        for name in names:
            with case(name):
                assert ...
    """
    names: list[str] = []
    failures: list[BaseException] = []
    case_names: list[str] = []

    @contextmanager
    def case(name: str) -> Iterator[None]:
        case_names.append(name)
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"case: {name}")
            names.append(name)
            failures.append(error)

    yield case
    assert case_names, "nothing was checked: no case was entered"
    if failures:
        raise BaseExceptionGroup(f"failed: {', '.join(names)}", failures)
