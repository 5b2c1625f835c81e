"""The memory of a process on Linux: a bound on it, and whether the kernel has ended any for lack of it."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache  # once a process: what one evaluation leaves is not what the next one begins with
def keep_memory_within(memory: int) -> None:
    """Have this process's allocations fail once it has so many bytes more than now, in whatever library."""
    import resource

    data_line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData:"))
    most = int(data_line.split()[1]) * 1024 + memory
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def kills_for_memory(root: Path = Path("/")) -> int | None:
    """How many processes of this control group the kernel has ended for lack of memory; None where it does not say."""
    for file in _accounts(root):
        with suppress(OSError, ValueError):
            for line in file.read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
    return None


def _accounts(root: Path) -> Iterator[Path]:
    """The files in which the kernel counts: of this group or, in a container, at the top."""
    groups = root / "sys/fs/cgroup"
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers:
                yield groups / group.lstrip("/") / "memory.events"
            elif controllers == "memory":
                yield groups / "memory" / group.lstrip("/") / "memory.oom_control"
    yield groups / "memory.events"
    yield groups / "memory" / "memory.oom_control"
