"""The entry point of `python -m nas`, which torchrun needs."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the working directory: a numpy.py there must not shadow the package

from nas.cli.main import main

main()
