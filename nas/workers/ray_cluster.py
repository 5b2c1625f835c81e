"""A Ray cluster: joining it without its talk, how much room it has, and what its head still answers."""

import io
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import redirect_stdout
from typing import Any, TypeVar

import ray

from nas.debugging import DEBUG
from nas.progress import said_if_slow
from nas.workers.head_lost import HeadLost
from nas.workers.resources import fitting
from search_spaces.errors import UserError

HEAD_PATIENCE_S = 20.0
"""So long the head may be away. Ray ends a process that cannot reach it for 60 s, without a word to its Python."""

T = TypeVar("T")

_PLACE = re.compile(r"(ray://)?[^\s/:]+:\d{1,5}")
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)  # RFC 9113, 3.4: preface, empty SETTINGS
_LISTENER = "ray_listen_error_messages"  # Ray's thread that prints what goes wrong in nodes, on standard output


class RayCluster:
    """A cluster that this process has joined, or begun where there was none to join; left, or ended, by `close`.

    Args:
        address: "ray" takes the one of RAY_ADDRESS, or the one on this machine, or begins one here;
            "ray://HOST:PORT" is a client's.

    Raises:
        UserError: It is not there, or does not let us in.
    """

    def __init__(self, address: str) -> None:
        self._quiet = redirect_stdout(_WithoutRay())
        self._joined = not ray.is_initialized()  # else it is the caller's, and stays
        self._lost = False
        self._quiet.__enter__()
        try:
            if self._joined:
                _join(None if address == "ray" else address)
            self._head = _head(address)
        except BaseException:
            self._quiet.__exit__(*sys.exc_info())
            raise

    def room(self, request: Mapping[str, float]) -> int:
        """How many evaluations that request so much (CPU, GPU, memory) the nodes have room for, were they idle."""
        return sum(_room_on(node["Resources"], request) for node in self._nodes())

    def has_gpus(self) -> bool:
        """Whether any node has."""
        return any(node["Resources"].get("GPU", 0) > 0 for node in self._nodes())

    def answer(self, ask: Callable[[], T]) -> T:
        """What Ray answers to what may need its head, which may have gone, or be stopped, in this very moment.

        Raises:
            HeadLost: There was none for HEAD_PATIENCE_S.
        """
        try:
            with said_if_slow("waiting for the head of the Ray cluster ..."):
                return _begun(ask).result(HEAD_PATIENCE_S)
        except TimeoutError:
            raise self.lost(f"has not answered for {HEAD_PATIENCE_S:g} s") from None
        except ConnectionError as error:  # a client's
            raise self.lost(f"is gone: {error}") from error

    def lost(self, how: str) -> HeadLost:
        """What is raised when the head is gone. After this it is not asked any more."""
        self._lost = True
        return HeadLost(
            f"the head of the Ray cluster, {self._head[0]}:{self._head[1]}, {how}. What has ended is stored; with a "
            "cluster again, the same command goes on from there."
        )

    def close(self, tasks: Iterable[Any]) -> None:
        """End tasks that are under way, and leave the cluster, or end it where it was begun here.

        Raises:
            HeadLost: It is not there to be left.
        """
        try:
            if self._lost:
                return
            if _hangs(self._head):
                raise self.lost(f"has not answered for {HEAD_PATIENCE_S:g} s")
            if self._joined:
                ray.shutdown()  # which ends all that this process has begun
            else:
                for task in tasks:
                    ray.cancel(task, force=True)
        finally:
            self._quiet.__exit__(None, None, None)

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self.answer(ray.nodes) if node["Alive"]]


class _WithoutRay(io.TextIOBase):
    """Standard error, but for Ray's remarks: standard output is for results, and what they say is said in a line."""

    def write(self, text: str) -> int:
        if threading.current_thread().name != _LISTENER or DEBUG in os.environ:
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        sys.stderr.flush()


def _hangs(head: tuple[str, int]) -> bool:
    """Whether a head lets others connect to it and says nothing: to leave it would take for ever. One that is gone does
    not. Ray is not asked: it aborts this process where its head ends, by the same signal perhaps, as it answers.
    """
    try:
        with socket.create_connection(head, timeout=1) as connection:
            connection.settimeout(HEAD_PATIENCE_S)
            connection.sendall(_HTTP2)
            connection.recv(1)
    except TimeoutError:
        return True
    except OSError:
        return False
    return False


def _begun(ask: Callable[[], T]) -> Future[T]:
    """What is asked in a thread, which is left behind where Ray does not come back."""
    answer: Future[T] = Future()

    def fetch() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=fetch, daemon=True).start()
    return answer


def _join(address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # an error is raised here, in a line
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # we hide GPUs ourselves, and need no remark
    on_term = signal.getsignal(signal.SIGTERM)
    own: dict[str, Any] = {} if address else {"include_dashboard": False}
    where = address or os.environ.get("RAY_ADDRESS") or "of this machine"
    try:
        if _PLACE.fullmatch(where):  # Ray takes a minute or two to find out
            socket.create_connection(_host_and_port(where), timeout=5).close()
        with said_if_slow("joining, or beginning, a Ray cluster ..."):
            ray.init(address, log_to_driver=DEBUG in os.environ, logging_level=logging.ERROR, **own)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        said = " ".join(dict.fromkeys((lines[0], lines[-1])))  # the last one is the cause, of a server's traceback
        raise UserError(
            f"the Ray cluster {where} could not be joined: {said}. See `ray status` there; one with tokens needs "
            "RAY_AUTH_MODE=token here."
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_term)  # which Ray takes


def _head(address: str) -> tuple[str, int]:
    """Where the head listens."""
    place = os.environ.get("RAY_ADDRESS", "") if address == "ray" else address
    is_client = place.startswith("ray://") and _PLACE.fullmatch(place)  # which knows the head by an inner address
    return _host_and_port(place if is_client else ray.get_runtime_context().gcs_address)


def _host_and_port(place: str) -> tuple[str, int]:
    host, _, port = place.removeprefix("ray://").rpartition(":")
    return host, int(port)


def _room_on(there: Mapping[str, float], request: Mapping[str, float]) -> int:
    """How many times a node has what is requested."""
    fits = {
        name: fitting(there.get(name, 0.0), each) if name == "GPU" else int(there.get(name, 0.0) // each)
        for name, each in request.items()
    }
    return min(fits.values(), default=0)
