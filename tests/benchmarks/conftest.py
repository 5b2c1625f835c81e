"""Import benchmarks from the repository's root, as `python -m benchmarks.NAME` does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
