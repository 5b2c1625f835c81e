"""The load of a GPU, and whether it has room for one more evaluation."""

from collections.abc import Collection
from dataclasses import dataclass

from nas.environment.nvml import handle_of
from search_spaces.support.errors import UserError, fields_of, reason_of

MAX_USED = 0.9
"""The share of a GPU's time, and of its memory, that evaluations are to take at most."""

ENOUGH_LOADS = 30
"""Measurements, a second or more apart, that a decision needs."""


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """The load of a GPU at a moment, by all its processes.

    Attributes:
        busy: The share of the last moments in which it computed anything.
        memory: The share of its memory that was taken.
    """

    busy: float
    memory: float


def has_room_for_one_more(loads: Collection[GpuLoad], running: int) -> bool:
    """Whether one evaluation more finds room where these loads were measured while so many `running` ones were there.

    It is taken to need as much as each of them: of the GPU's time on average, of its memory at the worst moment.
    """
    if len(loads) < ENOUGH_LOADS:
        return False
    busy = sum(load.busy for load in loads) / len(loads)
    memory = max(load.memory for load in loads)
    return max(busy, memory) * (running + 1) / running <= MAX_USED


def read_load(gpu: int) -> GpuLoad:
    """The load of a GPU, by its number among those that this process sees. Raises UserError where NVML does not say."""
    try:
        import pynvml

        handle = handle_of(gpu)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return GpuLoad(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100, memory.used / memory.total)
    except ImportError:
        message = '--trial-gpus auto measures by NVML: pip install ".[gpu]"'
        raise UserError("needs-extra", message, option="--trial-gpus", value="auto", extra="gpu") from None
    except Exception as error:  # NVML's own has no name where it is not installed; a MIG slice tells no times
        reason = reason_of(error)
        raise UserError(
            "needs-system",
            f"--trial-gpus auto needs how busy GPU {gpu} is, and NVML says: {reason}. Give a share: 0.5.",
            option="--trial-gpus",
            value="auto",
            gpu=gpu,
            **fields_of(error),
        ) from None
