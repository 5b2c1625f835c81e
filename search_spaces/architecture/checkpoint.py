"""Checkpoints: a folder with weights.safetensors and architecture.json. Nothing is unpickled."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from errno import ENOSPC
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError, cause_fields, reason_of
from search_spaces.support.files import (
    atomic_replace,
    atomic_write,
    check_regular_file,
    kind_of_read_error,
    partial_file,
)
from search_spaces.support.spec import Scalar

Shape = tuple[int, ...] | None

_MAX_RECORD = 2**20
"""Maximum bytes of a record, which has a few hundred."""

WEIGHTS, RECORD = "weights.safetensors", "architecture.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The metadata of a checkpoint: enough to build its network again.

    Attributes:
        task: The task that it was trained on.
        task_version: Version of the task.
        architecture: The network.
        step: Optimizer steps taken.
        settings: Other data that the task needs to build the network: preset, vocabulary, data.
    """

    task: str
    task_version: int
    architecture: Architecture
    step: int
    settings: Mapping[str, Scalar] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return one JSON object."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Parse what `to_json` wrote. Raises UserError, ValueError, TypeError or KeyError for anything else."""
        values = json.loads(text)
        return cls(**{**values, "architecture": Architecture(**values["architecture"])})


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return all weights by name; a shared tensor (a tied head) is listed under its first name only."""
    first: dict[int, str] = {}
    state = model.state_dict(keep_vars=True)
    state_by_name = {
        name: tensor.detach() for name, tensor in state.items() if first.setdefault(id(tensor), name) == name
    }
    # In sharded training each process holds a part of a DTensor (not imported, since that takes a second). All
    # processes must gather together.
    return {
        name: getattr(tensor, "full_tensor", lambda tensor=tensor: tensor)() for name, tensor in state_by_name.items()
    }


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """Return 12 hex digits that identify these weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)} ".encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:12]


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], source: str) -> None:
    """Copy weights into a network with exactly these names and shapes.

    Raises:
        UserError: They do not fit; the error names the first mismatch and the `source` of the weights.
    """
    network_weights = weights_of(model)
    for name, tensor in network_weights.items():
        if name not in weights:
            raise _misfit(source, f"it has no {name}", name, None, tuple(tensor.shape))
        if weights[name].shape != tensor.shape:
            shapes = f"{list(weights[name].shape)}, and {list(tensor.shape)} in the network"
            raise _misfit(source, f"its {name} has shape {shapes}", name, (*weights[name].shape,), (*tensor.shape,))
    for name in weights:
        if name not in network_weights:
            raise _misfit(source, f"the network has no {name}", name, tuple(weights[name].shape), None)
    with torch.no_grad():
        for name, tensor in network_weights.items():
            tensor.copy_(weights[name])


def save_checkpoint(folder: Path, weights: Mapping[str, Tensor], record: Record) -> None:
    """Write a checkpoint; each file of an earlier one is replaced atomically.

    Raises:
        OSError: It cannot be written.
    """
    contiguous = {name: tensor.contiguous() for name, tensor in weights.items()}
    with partial_file(folder / WEIGHTS) as partial:
        try:
            save_file(contiguous, partial, metadata={"record": _digest(record), "weights": fingerprint(contiguous)})
        except SafetensorError as error:  # raised when the disk is full
            raise OSError(ENOSPC, f"{error}") from error
        atomic_replace(partial, folder / WEIGHTS)
    atomic_write(folder / RECORD, record.to_json().encode())


def read_record(folder: Path) -> Record:
    """Read the record of a checkpoint. Raises UserError if there is none or it is invalid."""
    path = folder / RECORD
    try:
        return Record.from_json(check_regular_file(path, _MAX_RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        rule = f"a checkpoint must be a folder with {WEIGHTS} and {RECORD}"
        message = f"{rule}, got {folder} without {RECORD}. Write one with `nas evaluate --save`."
        raise UserError("missing-file", message, path=str(path)) from None
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError, OSError) as error:
        reason = f"{reason_of(error):.200}".rstrip(".")
        message = f"cannot read checkpoint record {path}: {reason}. Use another checkpoint, or train again."
        raise UserError(kind_of_read_error(error), message, **{**cause_fields(error), "path": str(path)}) from error


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read the weights of a checkpoint by name, onto the CPU.

    Raises:
        UserError: They cannot be read, belong to another step, or are damaged.
    """
    path, record = folder / WEIGHTS, read_record(folder)
    try:
        with safe_open(check_regular_file(path), framework="pt") as file:
            stamp, weights = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        message = f"{path} cannot be read: {error}. Use another checkpoint, or train again."
        raise UserError(kind_of_read_error(error), message, **{**cause_fields(error), "path": str(path)}) from error
    if stamp.get("record") != _digest(record):
        message = f"{path} and its {RECORD} belong to different checkpoints. Use another, or train again."
        raise UserError("mismatch", message, path=str(path))
    # A flipped bit would go unnoticed otherwise, and saved networks and initial weights depend on it.
    if stamp.get("weights") != fingerprint(weights):
        message = f"{path} is damaged: its checksum does not match. Use another checkpoint, or train again."
        raise UserError("bad-file", message, path=str(path))
    return weights


def _digest(record: Record) -> str:
    """Return a digest of the record, stored with the weights, which detects files of different checkpoints."""
    return hashlib.sha256(record.to_json().encode()).hexdigest()[:12]


def _misfit(source: str, difference: str, weight: str, shape: Shape, network_shape: Shape) -> UserError:
    """Return the error for a weight that does not fit; a shape is None where the weight is missing."""
    message = f"{source} does not fit the network: {difference}. Is it of another architecture or vocabulary?"
    return UserError("mismatch", message, source=source, weight=weight, shape=shape, network_shape=network_shape)
