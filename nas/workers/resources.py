"""Resources of evaluations: processes, threads, time, memory, GPUs; and their text forms. Loads no torch."""

import re
import sys
from dataclasses import dataclass, fields
from typing import Final, Literal, final

from nas.request.text_checks import check_number
from search_spaces.support.errors import Kind, UserError, number_error_kind

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "B": 1}
_BYTES |= {f"{prefix}{ending}": 1000**power for power, prefix in enumerate("kMGT", 1) for ending in ("", "B")}
_BYTES |= {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)}
_CLUSTER = re.compile(r"ray://[^\s/:]+:\d{1,5}")
_GPUS = re.compile(r"\d{1,6}(?:\.0*)?|0?\.\d+")
_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{0,9})?)\s*([a-zA-Z]{0,3})")

MAX_WORKERS = 10**3
"""Largest number of workers of one machine."""

AUTO: Final = "auto"
"""Run as many evaluations on each GPU as its measured load allows."""


@final
@dataclass(frozen=True, slots=True, init=False)
class Resources:
    """Resources of the evaluations of a call.

    A time or a size is a number or text: times are 90, "90s", "30m" or "2h", memory 4e9, "4G" or "4GiB".

    Attributes:
        workers: Evaluations at once, None to choose by the machine, or a Ray cluster: "ray" or "ray://HOST:PORT".
        threads: CPU threads of each evaluation.
        trial_timeout: Time limit of an evaluation in seconds, or None.
        trial_memory: Bytes that an evaluation may allocate in addition to those at its start; None is no limit. Linux
            only.
        trial_gpus: GPUs of each evaluation: a whole number, a fraction of one, or AUTO; None is one if there are any,
            shared if there are more workers than GPUs.

    Raises:
        UserError: A value cannot be read or is out of range.
    """

    workers: int | str | None
    threads: int
    trial_timeout: float | None
    trial_memory: int | None
    trial_gpus: float | Literal["auto"] | None

    def __init__(
        self,
        workers: int | str | None = None,
        threads: int = 1,
        *,
        trial_timeout: str | float | None = None,
        trial_memory: str | float | None = None,
        trial_gpus: str | float | None = None,
    ) -> None:
        check_number("threads", threads)
        values = (
            workers_of(workers),
            threads,
            seconds_of("trial_timeout", trial_timeout),
            memory_of(trial_memory),
            gpus_of(trial_gpus),
        )
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)


def memory_of(value: str | float | None) -> int | None:
    """Parse a size in bytes: 4e9, "4G", "800MB", "4GiB". Raises UserError, also on systems other than Linux."""
    if value is None:
        return None
    size = int(_quantity("trial_memory", value, _BYTES, "4G, 800MB or 4GiB", 1, 1e15))
    if sys.platform != "linux":
        message = f"--trial-memory works on Linux only, and this is {sys.platform}. Leave it out."
        raise UserError("needs-system", message, option="--trial-memory", value=value, needs="linux")
    return size


def workers_of(value: int | str | None) -> int | str | None:
    """Parse a number of workers, or the address of a Ray cluster. Raises UserError for other text."""
    text = str(value).strip()
    if value is None:
        return None
    if text == "ray" or _CLUSTER.fullmatch(text):
        return text
    if isinstance(value, bool) or not text.isdecimal() or text.strip("0") == "":
        message = f"--workers must be a whole number of at least 1, ray, or ray://HOST:PORT, got {value!r:.40}."
        of_text: Kind = "out-of-range" if text.removeprefix("-").isdecimal() else "bad-syntax"
        kind = of_text if isinstance(value, str) else number_error_kind(value, whole=True)
        raise UserError(kind, message, option="--workers", value=value, least=1)
    if len(text) > 9 or int(text) > MAX_WORKERS:
        message = f"--workers must be at most {MAX_WORKERS}, got {text:.40}. For more, use a Ray cluster: ray."
        raise UserError("out-of-range", message, option="--workers", value=value, most=MAX_WORKERS)
    return int(text)


def gpus_of(value: float | str | None) -> float | Literal["auto"] | None:
    """Parse the GPUs of an evaluation: a whole number, a fraction of one, or AUTO. Raises UserError for other text."""
    if value is None:
        return None
    if str(value).strip() == AUTO:
        return AUTO
    if not _GPUS.fullmatch(str(value).strip()):
        message = f"--trial-gpus must be a whole number, a share of a GPU such as 0.5, or auto, got {value!r:.40}."
        raise UserError("bad-syntax", message, option="--trial-gpus", value=value)
    return float(value)


def processes_for(gpus: float | None) -> int:
    """Return the number of processes of an evaluation: one for each GPU."""
    return max(1, int(gpus or 1))


def num_that_fit(available: float, request: float) -> int:
    """Return how many evaluations fit on `available` GPUs, each with a whole number or a fraction of one."""
    return int(available // request) if request >= 1 else int(available) * int(1 / request + 1e-9)


def seconds_of(name: str, value: str | float | None) -> float | None:
    """Parse a time in seconds: 90, "90", "30m", "2h", "1d". Raises UserError, naming the option, for other text."""
    return None if value is None else _quantity(name, value, _SECONDS, "90s, 30m, 2h or 1d", 1e-3, 1e9)


def _quantity(name: str, value: str | float, units: dict[str, int], example: str, least: float, most: float) -> float:
    match = _QUANTITY.fullmatch(str(value).strip())
    amount = None if match is None or match[2] not in units else float(match[1]) * units[match[2]]
    if amount is None or not least <= amount <= most:
        option = f"--{name.replace('_', '-')}"
        raise UserError(
            "bad-syntax" if amount is None else "out-of-range",
            f"{option} must be a positive number such as {example}, from {least:g} to {most:.0e}, got {value!r:.60}.",
            option=option,
            value=value,
            least=least,
            most=most,
        )
    return amount


DEFAULT_RESOURCES = Resources()
"""As many evaluations at once as use the machine well, each on one CPU thread, without limits."""
