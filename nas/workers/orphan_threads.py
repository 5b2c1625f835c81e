"""Threads that wait for a cluster's head for ever. By itself, for whoever ends this process has no need of Ray."""

from threading import Thread

LEFT_BEHIND: list[Thread] = []
"""Where there are any, this process is to end without Ray's own end, which waits for the head too, or crashes."""
