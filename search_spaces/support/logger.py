"""Messages of the project: the standard library's logger "nas", which writes lines to standard error."""

import logging
import os
import sys
from typing import final

from search_spaces.support.errors import printable
from search_spaces.support.quiet_timer import OUTPUT_TIMER

LEVEL = "NAS_LOG_LEVEL"
"""The environment variable with the lowest level that is written: DEBUG, INFO (the default), WARNING or ERROR."""


@final
class _StandardError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print(printable(record.getMessage()), file=sys.stderr, flush=True)  # above progress bars, where rich draws some
        OUTPUT_TIMER.reset()


def set_level(level: str) -> None:
    """Write messages of this level and above, in this process and in those that it starts."""
    os.environ[LEVEL] = level
    LOGGER.setLevel(level)


LOGGER = logging.getLogger("nas")
"""Debug: when each evaluation starts and ends. Info: what is being done. Warning: what failed."""

LOGGER.propagate = False
LOGGER.addHandler(_StandardError())
if LOGGER.level == logging.NOTSET:  # else a caller has set it
    _level = os.environ.get(LEVEL, "").upper()
    LOGGER.setLevel(_level if _level in ("DEBUG", "INFO", "WARNING", "ERROR") else "INFO")
