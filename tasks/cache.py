"""What is made once and read again: texts, kept under the digest of what they were made from."""

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile

from search_spaces.errors import Notice


def cache_folder() -> Path:
    """Where this platform keeps a user's caches; NAS_CACHE names another place."""
    chosen = os.environ.get("NAS_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "nas-bench-wiring"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "nas-bench-wiring"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nas-bench-wiring"


def cached(name: str, make: Callable[[], str]) -> str:
    """The text kept under `name`, made and kept where there is none yet.

    `name` holds a digest of all that `make` depends on, so that nothing has to be thrown away. Two processes
    may make the same text at once: each writes a file of its own and moves it into place whole. A cache that
    cannot be written to costs time, not the run.
    """
    path = cache_folder() / name
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="utf-8", newline="", dir=path.parent, delete=False) as file:
            file.write(text)
        Path(file.name).replace(path)
    except OSError as error:
        warnings.warn(f"{path} could not be kept, and is made anew each time: {error}", Notice, 2)
    return text
