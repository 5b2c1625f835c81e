"""The provenance of a Row: packages, commit, command, device and time."""

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
    """The provenance of an evaluation that begins now."""
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
    """Package -> version, of those that are installed and move numbers."""
    packages = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            continue
    return packages


@cache
def commit() -> str | None:
    """The commit of the checkout that this code runs from, with "+" where files were changed; None elsewhere."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def command() -> str:
    """The command line of this process, the program without its folder."""
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
