"""Texts of times, memory, workers and GPUs, and the kernel's memory limit."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expect import raises
from grouped import grouped
from nas.workers.memory_limit import limit_memory, oom_kills
from nas.workers.resources import MAX_WORKERS, Resources, num_that_fit, seconds_of


def check_errors(read: Callable[[Any], object], texts: list[Any], kind: Any, option: str) -> None:
    """Assert that each text raises an error of this kind with the option and the value."""
    with grouped() as case:
        for text in texts:
            value = {} if text != text else {"value": text}  # NaN equals nothing
            with case(str(text)), raises(kind, option=option, **value):
                read(text)


def test_times_are_read_in_seconds_minutes_hours_and_days() -> None:
    times = {"90": 90, 90: 90, 1.5: 1.5, "30m": 1800, "1.5h": 5400, "2 d": 172800}
    assert {value: seconds_of("timeout", value) for value in times} == times
    assert seconds_of("timeout", None) is None


def test_invalid_times_are_errors() -> None:
    def read(value: Any) -> float | None:
        return Resources(trial_timeout=value).trial_timeout

    check_errors(read, ["", "-1", "1w", "1e3", "nan", "inf", "1h30m", "h", -2.0], "bad-syntax", "--trial-timeout")
    check_errors(read, ["0", 0, "99999999999999d"], "out-of-range", "--trial-timeout")


def test_memory_is_read_in_decimal_and_binary_units() -> None:
    sizes = {"4G": 4 * 10**9, "512M": 512 * 10**6, 10**9: 10**9, "1 GB": 10**9, "2GiB": 2**31, "8kB": 8000}
    assert {value: Resources(trial_memory=value).trial_memory for value in sizes} == sizes


def test_invalid_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(value: Any) -> int | None:
        return Resources(trial_memory=value).trial_memory

    check_errors(read, ["4Gb", "4iB", "G", "-1G", "4g"], "bad-syntax", "--trial-memory")
    check_errors(read, ["0", "9999999T", "0.5", "0.4B"], "out-of-range", "--trial-memory")
    monkeypatch.setattr(sys, "platform", "darwin")
    with raises("needs-system", option="--trial-memory", value="4G", needs="linux"):
        read("4G")


def test_workers_are_a_number_or_a_cluster() -> None:
    cluster = "ray://10.0.0.1:10001"
    workers = {None: None, 3: 3, "3": 3, "ray": "ray", cluster: cluster}
    assert {value: Resources(value).workers for value in workers} == workers


def test_invalid_workers_are_errors() -> None:
    def read(value: Any) -> Any:
        return Resources(value).workers

    texts = ["", "1.5", "two", "rays", "ray:", "ray://", "ray://host", "ray:10001"]
    check_errors(read, texts, "bad-syntax", "--workers")
    check_errors(read, [1.5, True], "wrong-type", "--workers")
    check_errors(lambda value: Resources(1, value), [0, -1], "out-of-range", "--threads")
    check_errors(lambda value: Resources(1, value), [1.5, "1", True, None], "wrong-type", "--threads")
    check_errors(read, [-1, "-1", 0, "0", MAX_WORKERS + 1, "1234567890123"], "out-of-range", "--workers")
    assert read(MAX_WORKERS) == MAX_WORKERS


def test_gpus_are_whole_numbers_shares_or_auto() -> None:
    gpus = {None: None, 0: 0.0, 2: 2.0, "2": 2.0, 0.5: 0.5, " .25": 0.25, " auto": "auto"}
    assert {value: Resources(trial_gpus=value).trial_gpus for value in gpus} == gpus


def test_invalid_gpus_are_errors() -> None:
    texts = [-1, 1.5, True, float("nan"), float("inf"), "", "all", "1e3", "1_0", "Auto"]
    check_errors(lambda value: Resources(trial_gpus=value).trial_gpus, texts, "bad-syntax", "--trial-gpus")


def test_share_of_a_gpu_is_of_one_gpu() -> None:
    fits = [(4, 1, 4), (4, 3, 1), (4, 0.5, 8), (3, 0.4, 6), (2, 1 / 3, 6), (1, 2, 0), (2, 0.1, 20)]
    assert [(there, each, num_that_fit(there, each)) for there, each, _ in fits] == fits


def reach_the_bound() -> None:
    """Reach the bound of this process's memory, and allocate again below it.

    Amounts exceed what a process that ran many tests has free in its heap, which no bound sees.
    """
    limit_memory(2_000_000_000)
    buffer = bytearray(1_200_000_000)
    with pytest.raises(MemoryError):
        bytearray(1_200_000_000)
    del buffer
    bytearray(1_200_000_000)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_process_allocates_up_to_its_bound_and_no_more(
    status_of_fork: Callable[[Callable[[], object]], int | None],
) -> None:
    assert status_of_fork(reach_the_bound) == 0


def write(root: Path, file: str, text: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text)


def test_kills_are_those_of_the_own_control_group(tmp_path: Path) -> None:
    assert oom_kills(tmp_path) is None
    write(tmp_path, "sys/fs/cgroup/memory.events", "low 0\noom 9\noom_kill 1\n")
    assert oom_kills(tmp_path) == 1  # in a container
    write(tmp_path, "proc/self/cgroup", "0::/user.slice/job\n")
    write(tmp_path, "sys/fs/cgroup/user.slice/job/memory.events", "oom 9\noom_kill 0\n")
    assert oom_kills(tmp_path) == 0


def test_kills_are_read_from_version_1_of_control_groups(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "8:pids:/\n4:memory:/job\n")
    write(tmp_path, "sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert oom_kills(tmp_path) == 3
