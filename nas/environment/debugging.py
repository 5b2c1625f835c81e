"""`nas --debug`: print full tracebacks of errors. An environment variable, so that workers inherit it."""

import os
import sys
import traceback

from search_spaces.support.errors import printable

DEBUG = "NAS_DEBUG"


def show_traceback(error: BaseException) -> None:
    """Print the traceback of an error on standard error if NAS_DEBUG is set."""
    if os.environ.get(DEBUG):
        print(printable("".join(traceback.format_exception(error))), end="", file=sys.stderr)
