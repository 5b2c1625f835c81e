"""Benchmarks are run from the repository's root, as `python -m benchmarks.NAME`, and so are they imported here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
