"""`nas --debug`: tracebacks of what is otherwise told in a line. In the environment, so that workers have it too."""

import os
import sys
import traceback

from search_spaces.support.errors import printable

DEBUG = "NAS_DEBUG"


def show_traceback(error: BaseException) -> None:
    """Print where an error came from, on standard error, if that was asked for."""
    if os.environ.get(DEBUG):
        print(printable("".join(traceback.format_exception(error))), end="", file=sys.stderr)
