"""`nas --debug`: tracebacks of what is otherwise told in a line. In the environment, so that workers have it too."""

import os
import traceback

DEBUG = "NAS_DEBUG"


def show_traceback(error: BaseException) -> None:
    """Print where an error came from, on standard error, if that was asked for."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
