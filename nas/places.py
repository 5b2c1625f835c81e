"""Where things are kept unless somebody says otherwise."""

from pathlib import Path

DEFAULT_STORE = "sqlite:///nas-runs/studies.db"

RUNS = Path("nas-runs")
"""Pictures and traces; and trained networks, where the store is no file that they could lie beside."""

EVALUATIONS = "evaluations"
"""The study of what was evaluated outside of a search, unless it is given another name."""
