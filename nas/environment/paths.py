"""Default paths, and names of files."""

import hashlib
from pathlib import Path

DEFAULT_STORE = "sqlite:///nas-runs/studies.db"

RUNS = Path("nas-runs")
"""Pictures and traces; and trained networks, where the store is no file that they could lie beside."""

EVALUATIONS = "evaluations"
"""The study of what was evaluated outside of a search, unless it is given another name."""


def slug(name: str) -> str:
    """A file name for a study, and for no other one."""
    short = safe_name(name)
    return short if short == name else f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def safe_name(text: str) -> str:
    """Part of a file name: what is not a letter, digit, dot, dash or underscore becomes a dash."""
    return "".join(character if character.isalnum() or character in "._-" else "-" for character in text).strip(".")


def folder_of_retrofit(checkpoint: str | Path, topology: str, save: str | Path | None) -> Path:
    """The folder of a retrofitted network: `save`, or beside its checkpoint, by that folder's name and the topology."""
    if save is not None:
        return Path(save)
    folder = Path(checkpoint).resolve()
    return folder.with_name(f"{folder.name}-{safe_name(topology)}")
