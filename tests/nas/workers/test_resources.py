"""What evaluations may use, as it is asked for, and what the kernel says of memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from nas.workers.memory import kills_for_memory
from nas.workers.resources import resources_of, seconds_of
from search_spaces.errors import UserError


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("90", 90), (90, 90), (1.5, 1.5), ("30m", 1800), ("1.5h", 5400), ("2 d", 172800)],
)
def test_times_are_read(asked: str | float, seconds: float) -> None:
    assert seconds_of("timeout", asked) == seconds


@pytest.mark.parametrize("asked", ["", "0", "-1", "1w", "1e3", "nan", "inf", "1h30m", "h", 0, -2.0, "99999999999999d"])
def test_what_is_no_time_is_refused_in_a_line(asked: str | float) -> None:
    with pytest.raises(UserError, match=r"^--trial-timeout must be a positive number such as 90s, 30m, 2h or 1d"):
        resources_of(None, 1, trial_timeout=asked)


@pytest.mark.parametrize(
    ("asked", "bytes_"),
    [("4G", 4 * 10**9), ("512M", 512 * 10**6), (10**9, 10**9), ("1 GB", 10**9), ("2GiB", 2**31), ("8kB", 8000)],
)
def test_memory_is_read(asked: str | int, bytes_: int) -> None:
    assert resources_of(None, 1, trial_memory=asked).memory == bytes_


@pytest.mark.parametrize("asked", ["4Gb", "4iB", "G", "0", "-1G", "4g", "9999999T", "0.5", "0.4B"])
def test_what_is_no_memory_is_refused_in_a_line(asked: str) -> None:
    with pytest.raises(UserError, match=r"^--trial-memory must be a positive number such as 4G"):
        resources_of(None, 1, trial_memory=asked)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_process_may_allocate_so_much_more_and_no_more() -> None:
    program = (
        "from nas.workers.memory import keep_memory_within\n"
        "keep_memory_within(100_000_000)\n"
        "held = bytearray(60_000_000)\n"
        "try:\n    bytearray(60_000_000)\nexcept MemoryError:\n    print('enough')\n"
        "del held\nbytearray(60_000_000)\nprint('again')"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["enough", "again"]


def written(root: Path, file: str, text: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text)


def test_the_control_groups_own_kills_are_counted(tmp_path: Path) -> None:
    assert kills_for_memory(tmp_path) is None
    written(tmp_path, "sys/fs/cgroup/memory.events", "low 0\noom 9\noom_kill 1\n")
    assert kills_for_memory(tmp_path) == 1  # in a container
    written(tmp_path, "proc/self/cgroup", "0::/user.slice/job\n")
    written(tmp_path, "sys/fs/cgroup/user.slice/job/memory.events", "oom 9\noom_kill 0\n")
    assert kills_for_memory(tmp_path) == 0


def test_the_older_control_groups_are_read_too(tmp_path: Path) -> None:
    written(tmp_path, "proc/self/cgroup", "8:pids:/\n4:memory:/job\n")
    written(tmp_path, "sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert kills_for_memory(tmp_path) == 3
