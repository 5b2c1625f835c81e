"""Default paths and file names."""

import hashlib
from pathlib import Path

DEFAULT_STORE = "sqlite:///nas-runs/studies.db"

RUNS = Path("nas-runs")
"""Folder of plots and traces, and of trained networks if the store is not a local file."""

EVALUATIONS = "evaluations"
"""The study of evaluations outside a search, by default."""


def slug(name: str) -> str:
    """Return a file name that is unique to a study."""
    short = safe_name(name)
    return short if short == name else f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def safe_name(text: str) -> str:
    """Return the text as part of a file name: all but letters, digits, dots, dashes and underscores become dashes."""
    return "".join(character if character.isalnum() or character in "._-" else "-" for character in text).strip(".")


def folder_of_retrofit(checkpoint: str | Path, topology: str, save: str | Path | None) -> Path:
    """Return the folder of a retrofitted network: `save`, or CHECKPOINT-TOPOLOGY beside the checkpoint."""
    if save is not None:
        return Path(save)
    folder = Path(checkpoint).resolve()
    return folder.with_name(f"{folder.name}-{safe_name(topology)}")
