"""Threads that wait for a Ray head forever. A separate module, so that the end of a process does not load Ray."""

from threading import Thread

STUCK_THREADS: list[Thread] = []
"""If not empty, the process must end without Ray's own shutdown, which would wait for the head too, or crash."""
