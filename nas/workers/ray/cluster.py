"""A Ray cluster: joining it without its output, its room, and calls that need its head."""

import atexit
import io
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import redirect_stdout, suppress
from typing import Any, TypeVar

import grpc
import ray
from tenacity import Retrying, retry_if_exception_message, stop_after_attempt

from nas.environment.debugging import DEBUG
from nas.workers.orphan_threads import STUCK_THREADS
from nas.workers.resources import num_that_fit
from search_spaces.support.errors import UserError
from search_spaces.support.progress import status_if_slow

HEAD_PATIENCE_S = 20.0
"""Seconds that the head may be away. Ray kills a process that cannot reach it for 60 s, without an exception."""

LEAVE_PATIENCE_S = 10.0
"""Seconds that leaving a cluster may take; it may hang forever."""

T = TypeVar("T")

_AGAIN_S = 0.5
# A head forks a server for each client, which may crash if gRPC is busy at that moment: then ask again.
_retry_server_start = Retrying(
    retry=retry_if_exception_message(match=r"(?s).*Starting Ray client server failed"),
    stop=stop_after_attempt(5),
    reraise=True,
)
_PLACE = re.compile(r"(ray://)?([^\s/:]+):(\d{1,5})")
_CALLER = "nas_asks_ray"  # a thread that waits for Ray; Ray prints its buffered messages in it
_LISTENER = "ray_listen_error_messages"  # Ray's thread that prints errors of nodes on standard output


class RayCluster:
    """A cluster that this process has joined, or started if there was none. `close` leaves or ends it.

    Args:
        address: "ray" is the one of RAY_ADDRESS, or the one on this machine, or a new one here;
            "ray://HOST:PORT" connects as a client.

    Attributes:
        has_gpus: Whether any of its nodes had GPUs when it was joined.

    Raises:
        UserError: It is not available, or refuses the connection.
    """

    def __init__(self, address: str) -> None:
        self._address_text = (os.environ.get("RAY_ADDRESS") or "of this machine") if address == "ray" else address
        self._quiet = redirect_stdout(_RayOutputFilter())
        self._owns_cluster = not ray.is_initialized()  # otherwise it is the caller's, and is not ended
        self._quiet.__enter__()
        try:
            if self._owns_cluster:
                _join(None if address == "ray" else address, self._address_text)
            self.has_gpus = any(node["Resources"].get("GPU", 0) > 0 for node in self._nodes())
        except BaseException:
            self.close(())
            raise

    def room(self, request: Mapping[str, float]) -> int:
        """Return how many evaluations with this request (CPU, GPU, memory) fit on the nodes, if they were idle."""
        return sum(_room_on(node["Resources"], request) for node in self._nodes())

    def answer(self, function: Callable[[], T]) -> T:
        """Call Ray where it may need its head, which may be gone or stopping.

        Raises:
            UserError: The head did not answer for HEAD_PATIENCE_S.
        """
        deadline = time.monotonic() + HEAD_PATIENCE_S
        with status_if_slow("waiting for the head of the Ray cluster ..."):
            while (timeout := deadline - time.monotonic()) > 0:
                try:
                    return _call_with_timeout(timeout, function)
                except TimeoutError:
                    break
                except ConnectionError as error:  # raised by a client
                    raise self.head_error(f"disconnected: {error}") from error
                except (grpc.RpcError, ValueError) as error:
                    if not _is_broken(error):
                        raise
                    time.sleep(_AGAIN_S)
        raise self.head_error(f"has not answered for {HEAD_PATIENCE_S:g} s", HEAD_PATIENCE_S)

    def head_error(self, problem: str, seconds: float | None = None) -> UserError:
        """Return the error for a head that is gone, or has not answered for `seconds`."""
        return UserError(
            "unavailable",
            f"the head of the Ray cluster {self._address_text} {problem}. Finished evaluations are stored. Run the "
            "same command in a new process to resume once the cluster is back.",
            cluster=self._address_text,
            seconds=seconds,
        )

    def close(self, tasks: Sequence[Any]) -> None:
        """Cancel running tasks and leave the cluster, or end it if it was started here, unless its head hangs."""

        def leave() -> None:
            if self._owns_cluster:
                ray.shutdown()  # ends all tasks of this process
            else:
                for task in tasks:
                    ray.cancel(task, force=True)

        try:
            with status_if_slow("leaving the Ray cluster ..."), suppress(Exception):  # the search's error is reported
                _call_with_timeout(LEAVE_PATIENCE_S, leave)
        finally:
            self._quiet.__exit__(None, None, None)

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self.answer(ray.nodes) if node["Alive"]]


class _RayOutputFilter(io.TextIOBase):
    """A standard output for Ray: drops Ray's own messages, and writes all else to standard error."""

    def write(self, text: str) -> int:
        if threading.current_thread().name not in (_CALLER, _LISTENER) or DEBUG in os.environ:
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        sys.stderr.flush()


def _is_broken(error: Exception) -> bool:
    """Return whether a client's connection is broken; Ray tries to repair it for half a minute."""
    return isinstance(error, grpc.RpcError) or "closed channel" in str(error)


def _call_with_timeout(seconds: float, function: Callable[[], T]) -> T:
    """Call in a thread, which becomes an orphan if Ray does not answer in time. Raises TimeoutError then."""
    answer: Future[T] = Future()

    def fetch() -> None:
        try:
            answer.set_result(function())
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=fetch, name=_CALLER, daemon=True)
    thread.start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        STUCK_THREADS.append(thread)
        atexit.unregister(ray.shutdown)
        raise


def _join(address: str | None, where: str) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # errors are raised here as UserErrors
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # GPUs are hidden in `nas.workers.ray.task`
    on_term = signal.getsignal(signal.SIGTERM)
    options: dict[str, Any] = {} if address else {"include_dashboard": False}
    try:
        if place := _PLACE.fullmatch(where):  # Ray takes a minute or two to fail
            socket.create_connection((place[2], int(place[3])), timeout=5).close()
        with status_if_slow("joining or starting a Ray cluster ..."):
            _retry_server_start(
                ray.init, address, log_to_driver=DEBUG in os.environ, logging_level=logging.ERROR, **options
            )
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = " ".join(dict.fromkeys((lines[0], lines[-1])))  # the last line of a server's traceback is the cause
        raise UserError(
            "unavailable",
            f"the Ray cluster {where} could not be joined: {reason}. See `ray status` there. A cluster with tokens "
            "needs RAY_AUTH_MODE=token here.",
            option="--workers",
            cluster=where,
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_term)  # Ray replaces the handler


def _room_on(resources: Mapping[str, float], request: Mapping[str, float]) -> int:
    """Return how many such requests fit on a node with these resources."""
    fits = {
        name: num_that_fit(resources.get(name, 0.0), amount)
        if name == "GPU"
        else int(resources.get(name, 0.0) // amount)
        for name, amount in request.items()
    }
    return min(fits.values(), default=0)
