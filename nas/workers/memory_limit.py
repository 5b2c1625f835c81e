"""Memory of a process on Linux: a limit on it, and the kernel's count of out-of-memory kills."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache  # only the first evaluation's start counts, not what later ones inherit
def limit_memory(memory: int) -> None:
    """Make allocations of this process fail, in any library, once it has `memory` bytes more than now."""
    import resource

    data_line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData:"))
    most = int(data_line.split()[1]) * 1024 + memory
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def oom_kills(root: Path = Path("/")) -> int | None:
    """Return the number of out-of-memory kills in this control group; None if the kernel does not report it."""
    for file in _cgroup_files(root):
        with suppress(OSError, ValueError):
            for line in file.read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
    return None


def _cgroup_files(root: Path) -> Iterator[Path]:
    """Yield the kernel's files of these counts: of this group or, in a container, of the root."""
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
