"""The provenance of a Row: package versions, commit, command, device and time."""

import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from nas.environment.passwords import without_passwords

_PACKAGES = (
    "nas-bench-wiring",
    "torch",
    "lightning",
    "pytorch-lightning",
    "timm",
    "transformers",
    "optuna",
    "fvcore",
    "gymnasium",
    "mujoco",
)


def provenance(device: str, threads: int) -> dict[str, Any]:
    """Return the provenance of an evaluation that starts now."""
    return {
        "versions": dict(versions()),
        "commit": commit(),
        "command": command(),
        "device": device,
        "threads": threads,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of the installed packages that can change results."""
    packages = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            continue
    return packages


@cache
def commit() -> str | None:
    """Return the commit of this checkout, with "+" if files were changed; None if the code is not in a checkout."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def command() -> str:
    """Return the command line of this process, with the program's name instead of its path."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv and sys.argv[0] else ["python"]
    return shlex.join(map(without_passwords, words))


def _git(root: Path, *words: str) -> str:
    process = subprocess.run(  # noqa: S603  # fixed words
        ["git", "-C", str(root), *words],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return process.stdout.strip()
