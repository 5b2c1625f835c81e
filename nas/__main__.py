"""`python -m nas`, which torchrun needs."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the working directory, which holds data: a numpy.py there is not ours to run

from nas.cli.main import main

main()
