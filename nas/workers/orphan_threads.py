"""Threads that wait for a cluster's head for ever. A module of its own, so that the end of a process loads no Ray."""

from threading import Thread

STUCK_THREADS: list[Thread] = []
"""If there are any, the process must end without Ray's own shutdown, which waits for the head too, or crashes."""
