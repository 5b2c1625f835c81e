"""Traces: a synthetic GPU trace with known numbers, a recorded CPU trace, and broken files."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from expect import raises
from grouped import grouped
from nas.costs.profile import trace

CPU_TRACE = Path(__file__).parent / "digits-vit-smoke.json.gz"
"""Three training steps of a digits-vit of depth 1 on a CPU, as torch 2.15 writes them."""

STEP = 1000.0  # microseconds


def kernel(name: str, start: float, duration: float, correlation: int) -> list[dict[str, Any]]:
    """An operator, the launch of its kernel, and the kernel, as kineto writes them."""
    host = {"ph": "X", "pid": 1, "tid": 1}
    return [
        {**host, "cat": "cpu_op", "name": "aten::mm", "ts": start - 20, "dur": 10.0,
         "args": {"External id": correlation}},
        {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start - 18, "dur": 5.0,
         "args": {"correlation": correlation, "External id": correlation}},
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration,
         "args": {"device": 0, "context": 1, "stream": 7, "correlation": correlation, "External id": correlation,
                  "blocks per SM": 0.5, "est. achieved occupancy %": 40, "registers per thread": 32}},
    ]  # fmt: skip


@pytest.fixture
def gpu(tmp_path: Path) -> Path:
    """Two steps of 1 ms, each with 600 us of kernels; 400 us are cuBLAS on tensor cores."""
    events: list[dict[str, Any]] = []
    for step in range(2):
        begin = 10_000.0 + step * STEP
        events.append(
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step + 1}", "pid": 1, "tid": 1,
             "ts": begin, "dur": STEP, "args": {"External id": 100 + step}}
        )  # fmt: skip
        events += kernel("nvjet_hsh_128x256", begin + 100, 400.0, 10 * step + 1)
        events += kernel("vectorized_elementwise_kernel", begin + 600, 200.0, 10 * step + 2)
    content = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132, "totalGlobalMem": 1}],
        "traceEvents": events,
    }
    path = tmp_path / "gpu.json.gz"
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    return path


def test_gpu_trace_gives_its_known_shares(gpu: Path) -> None:
    shares = trace.summary(gpu)
    assert shares["time_kernel"] == pytest.approx(0.6)
    assert shares["tensor_core_share"] == pytest.approx(2 / 3)
    assert shares["occupancy"] == pytest.approx(0.4)
    assert shares["sm_efficiency"] == pytest.approx(0.5 * shares["gpu_utilisation"])
    assert sum(value for name, value in shares.items() if name.startswith("time_")) == pytest.approx(1)


def test_cpu_trace_has_no_gpu_figures() -> None:
    shares = trace.summary(CPU_TRACE)
    assert set(shares) == {f"time_{part}" for part in trace.SHARES}
    assert shares["time_kernel"] == 0
    assert shares["time_cpu"] > 0.1
    assert sum(shares.values()) == pytest.approx(1)


def test_the_slowest_operators_come_first() -> None:
    slowest = trace.operators(CPU_TRACE, 5)
    assert len(slowest) == 5
    assert [record["host_ms"] for record in slowest] == sorted((record["host_ms"] for record in slowest), reverse=True)
    assert any(record["operator"].startswith("aten::") for record in slowest)


def test_new_trace_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trace.json.gz"
    trace.record(lambda: torch.ones(8, 8) @ torch.ones(8, 8), path, torch.device("cpu"))
    assert {record["operator"]: record["calls"] for record in trace.operators(path, 50)}["aten::mm"] == trace.STEPS


def test_files_that_are_no_trace_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    with grouped() as case:
        for content in (b"{", b"not a trace", b'{"traceEvents": []}', gzip.compress(b"[]", mtime=0)):
            path.write_bytes(content)
            with case(str(content)), raises("bad-file", path=str(path)):
                trace.summary(path)
