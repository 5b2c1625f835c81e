"""The load of a GPU, and whether it has room for another evaluation."""

from collections.abc import Collection
from dataclasses import dataclass

from nas.environment.nvml import handle_of
from search_spaces.support.errors import UserError, cause_fields, reason_of

MAX_USED = 0.9
"""Largest fraction of a GPU's time, and of its memory, that evaluations may use."""

ENOUGH_LOADS = 30
"""Measurements, at least a second apart, that a decision needs."""


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """The load of a GPU by all its processes.

    Attributes:
        busy: Fraction of the last moments in which it computed anything.
        memory: Fraction of its memory in use.
    """

    busy: float
    memory: float


def has_room_for_one_more(loads: Collection[GpuLoad], running: int) -> bool:
    """Return whether another evaluation fits, from loads that were measured with `running` evaluations.

    It is assumed to need as much as each of them: their mean of the GPU's time, and their peak of its memory.
    """
    if len(loads) < ENOUGH_LOADS:
        return False
    busy = sum(load.busy for load in loads) / len(loads)
    memory = max(load.memory for load in loads)
    return max(busy, memory) * (running + 1) / running <= MAX_USED


def read_load(gpu: int) -> GpuLoad:
    """Return the load of a GPU, by its index among those this process sees. Raises UserError if NVML cannot tell."""
    try:
        import pynvml

        handle = handle_of(gpu)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return GpuLoad(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100, memory.used / memory.total)
    except ImportError:
        message = '--trial-gpus auto needs NVML: pip install ".[gpu]"'
        raise UserError("needs-extra", message, option="--trial-gpus", value="auto", extra="gpu") from None
    except Exception as error:  # NVML's error class needs pynvml; a MIG slice has no utilization
        reason = reason_of(error)
        raise UserError(
            "needs-system",
            f"--trial-gpus auto needs the load of GPU {gpu}, and NVML failed: {reason}. Give a share such as 0.5.",
            option="--trial-gpus",
            value="auto",
            gpu=gpu,
            **cause_fields(error),
        ) from None
