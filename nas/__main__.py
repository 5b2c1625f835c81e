"""`python -m nas`, which torchrun needs."""

from nas.cli import main

main()
