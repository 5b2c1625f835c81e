"""Retry while a database's server is away, with a message. A file is never away."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential, wait_random

from search_spaces.support.logger import LOGGER

OUTAGE_S = 300.0
"""Seconds after which a server that is away is given up."""

# PostgreSQL's documentation, appendix A: connections that fail, a server that stops or starts, too many connections,
# and what a server undid for somebody else's sake.
_TRANSIENT = ("08", "57P0", "53300", "40001", "40P01")

_P = ParamSpec("_P")
_T = TypeVar("_T")


def is_outage(error: BaseException | None) -> bool:
    """Whether an error, or one that it came of or came up with, is a server that is away and may come back."""
    while error is not None:
        if isinstance(error, DisconnectionError) or (isinstance(error, DBAPIError) and error.connection_invalidated):
            return True
        if isinstance(error, OperationalError | InterfaceError):
            code = getattr(error.orig, "sqlstate", "")  # None where the driver found it out; a file has none
            if code is None or code.startswith(_TRANSIENT):
                return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


BACK = "the store is back"
"""The message at the end of an outage."""


def retry_on_disconnect(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """A function that asks a database, called again while its server is away: for five minutes, in growing waits.

    What it did may have been kept although its answer was lost: it must be able to do it again.
    """

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        attempts = Retrying(
            retry=retry_if_exception(is_outage),
            wait=wait_exponential(multiplier=0.5, max=10) + wait_random(0, 0.5),  # not all at once
            stop=_stop_after_outage(),
            before_sleep=_say_once,
            reraise=True,
        )
        result = attempts(function, *args, **kwargs)
        if attempts.statistics["attempt_number"] > 1:
            LOGGER.info(BACK)
        return result

    return call


def _stop_after_outage() -> Callable[[RetryCallState], bool]:
    """A stop condition: OUTAGE_S after the first failure, since the call may have waited before."""
    failure_times: list[float] = []

    def stop(state: RetryCallState) -> bool:
        now = state.outcome_timestamp or 0.0
        failure_times.append(now)
        return now - failure_times[0] >= OUTAGE_S

    return stop


def _say_once(state: RetryCallState) -> None:
    if state.attempt_number == 1:
        cause = state.outcome.exception() if state.outcome else None
        while cause is not None and cause.__cause__ is not None:
            cause = cause.__cause__  # the driver's words
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        LOGGER.info(f"the store is away ({lines[0].rstrip('.')}): it is asked again, for {OUTAGE_S / 60:g} minutes")
