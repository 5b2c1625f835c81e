"""Retries during an outage of a database's server, with a message. A SQLite file has no outages."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential, wait_random

from search_spaces.support.logger import LOGGER

OUTAGE_S = 300.0
"""Seconds after which retries end."""

# PostgreSQL's documentation, appendix A: connection failures, a server that stops or starts, too many connections, and
# transactions that the server rolled back because of others.
_TRANSIENT = ("08", "57P0", "53300", "40001", "40P01")

_P = ParamSpec("_P")
_T = TypeVar("_T")


def is_outage(error: BaseException | None) -> bool:
    """Return whether an error, or one in its chain of causes, is a temporary outage of a server."""
    while error is not None:
        if isinstance(error, DisconnectionError) or (isinstance(error, DBAPIError) and error.connection_invalidated):
            return True
        if isinstance(error, OperationalError | InterfaceError):
            code = getattr(error.orig, "sqlstate", "")  # None if the driver detected it; absent for a file
            if code is None or code.startswith(_TRANSIENT):
                return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


BACK = "the store is available again"
"""The message at the end of an outage."""


def retry_on_disconnect(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Wrap a function that uses a database: call it again during an outage, for five minutes, with growing waits.

    The function must be safe to repeat: its effect may have been stored although the answer was lost.
    """

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        attempts = Retrying(
            retry=retry_if_exception(is_outage),
            wait=wait_exponential(multiplier=0.5, max=10) + wait_random(0, 0.5),  # spread over coordinators
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
    """Return a stop condition: OUTAGE_S after the first failure, since the call may have taken long before it."""
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
            cause = cause.__cause__  # the driver's message
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        LOGGER.warning(f"the store is unavailable ({lines[0].rstrip('.')}): retrying for {OUTAGE_S / 60:g} minutes")
