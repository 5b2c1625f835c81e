"""What a network costs on the device at hand: time, memory and energy, and where the time goes."""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # read when torch first profiles; else it writes to the terminal
