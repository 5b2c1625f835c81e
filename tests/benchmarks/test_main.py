"""The list of benchmarks."""

import subprocess
import sys

from benchmarks.__main__ import benchmarks


def test_each_benchmark_is_named_with_what_it_measures_and_nothing_else_is() -> None:
    named = benchmarks()
    assert {"overhead", "compiled_step", "noisy_search"} <= set(named)
    assert not {"form", "landscapes", "plain_gpt", "__main__"} & set(named)
    assert all(named.values())


def test_the_list_is_printed() -> None:
    printed = subprocess.run([sys.executable, "-m", "benchmarks"], capture_output=True, text=True, check=True).stdout
    lines = printed.splitlines()
    assert len(lines) == len(benchmarks())
    assert lines[0].startswith("python -m benchmarks.compiled_step ")
