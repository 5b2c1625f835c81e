"""Passwords in what people type: a database's URL in any spelling, and words of a command line. None is ever shown."""

import re
from urllib.parse import unquote

_STARS = "***"

_BEFORE_AT = re.compile(r"((?:[a-z][a-z0-9+.-]*:/*|//)?[^\s:@/]*)(:|%3a)(?!//).*@", re.IGNORECASE | re.DOTALL)
"""USER:PASSWORD@ with or without a scheme: up to the last @, for a password may hold any character."""

_SETTINGS = (
    re.compile(r"([?&])([^=&]*)(=)([^&]*)"),  # of a URL's query
    re.compile(r"(^|[\s;])([^\s=;?]+)(\s*=\s*)('[^']*'|[^\s;]*)"),  # of libpq's and ODBC's texts
)

_SECRET = re.compile(r".*(pass|passwd|password|passphrase|pwd|secret)|(.*_)?token|odbc_connect", re.IGNORECASE)
"""Names whose values are nobody's business; ODBC's is a whole connection string."""


def without_passwords(word: str) -> str:
    """A URL, or one word of a command line, with three stars for its passwords; rather too many stars than too few."""
    word = _BEFORE_AT.sub(rf"\1\2{_STARS}@", word)
    for setting in _SETTINGS:
        word = setting.sub(_hide, word)
    return word


def _hide(match: re.Match[str]) -> str:
    before, name, equals, value = match.groups()
    return f"{before}{name}{equals}{_STARS}" if value and _SECRET.fullmatch(unquote(name)) else match.group()


def visible_part(text: str) -> str:
    """The part of a text that can be shown although it is no URL: up to its first colon."""
    before, colon, _ = without_passwords(text).partition(":")
    return f"{before}:{_STARS}" if colon else before
