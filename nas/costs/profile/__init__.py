"""Costs of a network on the device of this machine: time, memory, energy, and a trace of where the time goes."""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # read when torch first profiles; otherwise it writes to the terminal
