"""Hiding of passwords in database URLs of any spelling and in words of a command line."""

import re
from urllib.parse import unquote

_STARS = "***"

_BEFORE_AT = re.compile(r"((?:[a-z][a-z0-9+.-]*:/*|//)?[^\s:@/]*)(:|%3a)(?!//).*@", re.IGNORECASE | re.DOTALL)
"""USER:PASSWORD@ with or without a scheme: up to the last @, since a password may contain any character."""

_SETTINGS = (
    re.compile(r"([?&])([^=&]*)(=)([^&]*)"),  # in the query of a URL
    re.compile(r"(^|[\s;])([^\s=;?]+)(\s*=\s*)('[^']*'|[^\s;]*)"),  # in connection strings of libpq and ODBC
)

_SECRET = re.compile(r".*(pass|passwd|password|passphrase|pwd|secret)|(.*_)?token|odbc_connect", re.IGNORECASE)
"""Names of settings whose values are hidden; ODBC's is a whole connection string."""


def without_passwords(word: str) -> str:
    """Return a URL or a word of a command line with *** for its passwords. In doubt, hide too much."""
    word = _BEFORE_AT.sub(rf"\1\2{_STARS}@", word)
    for setting in _SETTINGS:
        word = setting.sub(_hide, word)
    return word


def _hide(match: re.Match[str]) -> str:
    before, name, equals, value = match.groups()
    return f"{before}{name}{equals}{_STARS}" if value and _SECRET.fullmatch(unquote(name)) else match.group()


def visible_part(text: str) -> str:
    """Return the part of a text that is safe to show even if it is not a URL: up to its first colon."""
    before, colon, _ = without_passwords(text).partition(":")
    return f"{before}:{_STARS}" if colon else before
