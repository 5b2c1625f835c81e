"""Expect errors and notices by kind (or rule) and fields; tests/messages.txt holds their sentences."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from search_spaces.support.errors import ContractError, Kind, Notice, UserError


@contextmanager
def raises(kind: Kind, /, **fields: Any) -> Iterator[pytest.ExceptionInfo[UserError]]:
    """Expect a UserError of this kind, whose fields include these, and whose message is one line."""
    with pytest.raises(UserError) as info:
        yield info
    check(info.value, kind, **fields)


@contextmanager
def warns(kind: Kind, /, **fields: Any) -> Iterator[list[Notice]]:
    """Expect at least one Notice, of this kind, whose fields include these. Yields all, filled when the block ends."""
    notices: list[Notice] = []
    with pytest.warns(Notice) as record:
        yield notices
    notices += [warning.message for warning in record if isinstance(warning.message, Notice)]
    for other in record:
        if not isinstance(other.message, Notice):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    condition, actual = f"expected {kind!r} with {fields}", [(notice.kind, notice.fields) for notice in notices]
    assert any(_agrees(notice, kind, fields) for notice in notices), f"{condition}, got {actual}"


@contextmanager
def breaks(rule: str, **fields: Any) -> Iterator[None]:
    """Expect a ContractError of this rule, whose fields include these, and whose message is one line."""
    with pytest.raises(ContractError) as info:
        yield
    assert info.value.check == rule, str(info.value)
    assert _includes(info.value.fields, fields), info.value.fields
    assert "\n" not in str(info.value).strip()


def check(error: UserError | Notice, kind: Kind, /, **fields: Any) -> None:
    """Assert that an error or notice has this kind and these fields."""
    condition = f"expected {kind!r} with {fields}"
    assert _agrees(error, kind, fields), f"{condition}, got {error.kind!r} with {error.fields}: {error}"
    assert "\n" not in str(error).strip()


def _agrees(error: UserError | Notice, kind: Kind, fields: dict[str, Any]) -> bool:
    return error.kind == kind and _includes(error.fields, fields)


def _includes(fields: dict[str, Any], subset: dict[str, Any]) -> bool:
    return all(name in fields and fields[name] == subset[name] for name in subset)
