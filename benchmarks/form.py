"""The common form of benchmarks: named figures, the machine that they were measured on, a table or one JSON object.

A script measures in `figures(quick)` and ends with `main("its_name", figures)`. It is run as `python -m
benchmarks.its_name [--quick] [--json]`.
"""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Attributes:
        value: This project's value; None if this machine cannot measure it.
        unit: "ms", "share", "ratio" ...
        better: Whether a higher or a lower value is better.
        target: The value to reach; None if there is none.
        peers: An alternative -> its value in the same run.
    """

    value: float | None
    unit: str
    better: Literal["higher", "lower"]
    target: float | None = None
    peers: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None without a value or a target."""
        if self.value is None or self.target is None:
            return None
        return self.value >= self.target if self.better == "higher" else self.value <= self.target

    @property
    def aim(self) -> str:
        """The target with its relation, such as ">= 0.98"; empty if there is none."""
        if self.target is None:
            return ""
        return f"{'>=' if self.better == 'higher' else '<='} {format_number(self.target)}"


def main(benchmark: str, figures: Callable[[bool], Mapping[str, Figure]]) -> None:
    """Measure and print as the command line asks. With --json, standard output is exactly one JSON object.

    Commands started here keep a checkout's bytecode, as installed packages do, even if the environment has
    PYTHONDONTWRITEBYTECODE.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{benchmark}")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="the same figures from less work, in about a minute: that it runs, not what it reaches",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    print(f"{benchmark}: measuring{'' if options.quick else ', which may take hours'} ...", file=sys.stderr, flush=True)
    with contextlib.redirect_stdout(sys.stderr):
        figures_by_name = figures(options.quick)
    if options.json:
        record = {
            "benchmark": benchmark,
            "source": "measured",
            "date": datetime.now(UTC).date().isoformat(),
            "form": "quick" if options.quick else "full",
            "machine": machine(),
            "figures": {k: asdict(f) for k, f in figures_by_name.items()},
        }
        print(json.dumps(record, allow_nan=False, indent=1))
    else:
        print(table(f"{benchmark} on {describe(machine())}", figures_by_name))


def machine() -> dict[str, Any]:
    """Return the machine of the figures: processor, cores, first GPU or None, versions."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "gpu": _gpu(),
        "python": platform.python_version(),
        "torch": _version("torch"),
    }


def child_peaks_mb(program: str) -> list[float]:
    """Return the peak memory in megabytes of a process that runs a program, at each call of its function `peak`."""
    usage = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
    program = f"import resource\ndef peak():\n    print('peak', {usage})\n{program}"
    output = subprocess.check_output([sys.executable, "-c", program], text=True, stderr=subprocess.DEVNULL)
    units_per_mb = 1024**2 if sys.platform == "darwin" else 1024
    return [int(line[5:]) / units_per_mb for line in output.splitlines() if line.startswith("peak ")]


def describe(machine: Mapping[str, Any]) -> str:
    """Return a machine's fields in a line."""
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def format_number(number: float) -> str:
    """Return a number with four significant digits, and with all digits before its decimal point."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def table(title: str, figures_by_name: Mapping[str, Figure]) -> str:
    """Return the figures as text, one line each, below a title."""
    lines = [title, ""]
    width = max(map(len, figures_by_name), default=0)
    for name, figure in figures_by_name.items():
        value = "not measured" if figure.value is None else f"{format_number(figure.value)} {figure.unit}"
        verdict = {True: "reached", False: "MISSED", None: ""}[figure.is_met]
        peers = ", ".join(f"{peer} {format_number(value)}" for peer, value in figure.peers.items())
        lines.append(f"{name:<{width}}  {value:<16} {figure.aim:<10} {verdict:<8} {peers}".rstrip())
    return "\n".join(lines)


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _gpu() -> str | None:
    """Return the name of the first GPU from nvidia-smi, so that light benchmarks load no torch."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        names = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return names.strip().splitlines()[0] if names.strip() else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
