"""Checkpoints of unfinished trainings.

A checkpoint is one file, written atomically, with the SHA-256 of its bytes in its name. The newest valid one is loaded;
a corrupt one is quarantined. If the disk is full, the checkpoint is skipped and the training continues.
"""

import hashlib
import time
import warnings
from pathlib import Path
from typing import Any, final

import torch

from search_spaces.support.errors import Notice
from search_spaces.support.files import BAD, PARTIAL, atomic_replace, file_sha256, partial_file, quarantine

SECONDS = 60.0
"""Minimum seconds between two periodic checkpoints."""

_SHARE = 0.02  # fraction of the time that may go into writing: a full replay buffer of the paper's size takes a while
_MAX_CHECKPOINTS = 2
_ENDING = ".ckpt"


@final
class Checkpoint:
    """The checkpoints of one training in a folder; those of other trainings are left alone.

    Args:
        folder: The folder, or None to save no checkpoints.
        identity: Text of everything that the training's numbers depend on.
    """

    def __init__(self, folder: Path | None, identity: str) -> None:
        self.folder = folder
        self.identity = identity
        self._name = f"training-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
        self._deadline = time.monotonic() + SECONDS

    def due(self) -> bool:
        """Return whether a periodic checkpoint is due."""
        return self.folder is not None and time.monotonic() > self._deadline

    def save(self, state: Any) -> None:
        """Save a state of plain values and tensors; if that fails, give a Notice."""
        if self.folder is None:
            return
        began, earlier = time.monotonic(), self._files()
        number = int(earlier[-1].name.split(".")[1]) + 1 if earlier else 1
        try:
            with partial_file(self.folder / self._name) as partial:
                torch.save({"run": self.identity, "state": state}, partial)
                name = f"{self._name}.{number:06}.{file_sha256(partial)}{_ENDING}"
                atomic_replace(partial, self.folder / name)
            for old in earlier[: 1 - _MAX_CHECKPOINTS]:
                old.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:  # torch raises its own error if the disk is full
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            message = f"no checkpoint can be saved in {self.folder}: {reason}. The training continues without."
            warnings.warn(Notice("unwritable", message, path=str(self.folder)), stacklevel=2)
        now = time.monotonic()
        self._deadline = now + max(SECONDS, (now - began) / _SHARE)

    def load(self) -> Any | None:
        """Return the newest valid state, its tensors on the CPU; None if there is none."""
        for path in reversed(self._files()):
            try:
                if file_sha256(path) == path.name.split(".")[2]:
                    record: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
                    if record["run"] == self.identity:
                        return record["state"]
                problem = "its checksum does not match"
            except FileNotFoundError:  # another process of this training has quarantined it
                continue
            except Exception as error:  # torch may raise anything, even for intact files
                problem = f"{type(error).__name__}"
            quarantine(path, problem)
        return None

    def quarantine(self, problem: str) -> None:
        """Quarantine all checkpoints of this training, whose state does not fit. A Notice says why."""
        for path in self._files():
            quarantine(path, f"it does not fit: {problem}")

    def clear(self) -> None:
        """Remove all files of this training."""
        for path in self._all():
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """Return the checkpoints, newest last."""
        checkpoints = [path for path in self._all() if path.name.endswith(_ENDING) and len(path.name.split(".")) == 4]
        return sorted(path for path in checkpoints if path.name.split(".")[1].isdecimal())

    def _all(self) -> list[Path]:
        """Return all files of this training, including quarantined and partial ones."""
        if self.folder is None or not self.folder.is_dir():
            return []
        endings = (_ENDING, BAD, PARTIAL)
        return [path for path in self.folder.glob(f"{self._name}.*") if path.name.endswith(endings)]
