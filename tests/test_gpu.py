"""Tests that need a GPU: `pytest -m gpu`."""

import gc
import json
import re
from dataclasses import replace
from math import hypot
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import nas
from benchmarks.topology_step import STYLE
from grouped import grouped
from nas.costs.profile.profile import profile
from nas.evaluation.evaluate import evaluate
from nas.evaluation.failures import is_gpu_error
from nas.request.job import EvaluationJob
from nas.workers import gpu_load, shared_gpus
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import build_transformer
from search_spaces.support.spec import Scalar
from search_spaces.testing.small_networks import embeddings, perturb, transformer
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology
from tasks.load import load_task
from tasks.training.compilation import compile_network
from tasks.vision.digits import DigitsViT

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]

GPU = torch.device("cuda")
WIRINGS = [*TOPOLOGIES.names(), "dca(k=2)", "grn-v3(k=2)", "attnres(every=2)", "mhc(mixing=permutations,streams=3)"]
ON_IT = ("accelerator", "auto")
"""The setting that moves small presets from the CPU to the GPU."""

WITHOUT_DATA = ("digits-vit", "digit-ranks-vit", "digits-dit", "stdlib-lm", "stdlib-mlm", "stdlib-glue", "lra-listops")


def stack_of(topology: str, depth: int = 3) -> Stack:
    """A transformer in double precision with perturbed weights."""
    return perturb(transformer(*resolve_topology(topology), depth, 4, 4))


def outputs_and_gradients(stack: Stack) -> tuple[Tensor, list[Tensor]]:
    """Outputs and all gradients, on the CPU."""
    device = next(stack.parameters()).device
    outputs = stack(*(part.to(device) for part in embeddings()))
    gradients = torch.autograd.grad(outputs.square().mean(), list(stack.parameters()), materialize_grads=True)
    return outputs.detach().cpu(), [gradient.cpu() for gradient in gradients]


@pytest.mark.parametrize("topology", WIRINGS)
def test_a_topology_on_a_gpu(topology: str) -> None:
    """Eager, recomputed and compiled results equal the CPU's; bf16 stays finite and close."""
    with grouped() as case:
        for recompute in (False, True):
            with case(f"recompute={recompute}"):
                computes_as_on_a_cpu(topology, recompute)
        with case("compiled to one graph"):
            compiles_to_the_same_numbers(topology)
        with case("64 blocks in bf16"):
            has_finite_gradients_in_bf16(topology)
        with case("compiled in bf16"):
            learns_compiled_as_eagerly(topology)


def computes_as_on_a_cpu(topology: str, recompute: bool) -> None:
    stack = stack_of(topology)
    expected = outputs_and_gradients(stack)
    stack.to(GPU).recompute_mixing = recompute
    torch.testing.assert_close(outputs_and_gradients(stack), expected, rtol=1e-9, atol=1e-12)


def compiles_to_the_same_numbers(topology: str) -> None:
    stack = stack_of(topology, 2)
    expected = outputs_and_gradients(stack)
    torch.compiler.reset()
    compile_network(stack.to(GPU), fullgraph=True)
    torch.testing.assert_close(outputs_and_gradients(stack), expected, rtol=1e-9, atol=1e-12)


def has_finite_gradients_in_bf16(topology: str) -> None:
    stack = transformer(*resolve_topology(topology), 64, 4, 4).float().to(GPU)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        outputs = stack(*(part.float().to(GPU) for part in embeddings()))
    outputs.float().square().mean().backward()
    assert outputs.isfinite().all()
    assert [name for name, p in stack.named_parameters() if p.grad is not None and not p.grad.isfinite().all()] == []


def learns_compiled_as_eagerly(topology: str) -> None:
    """The size makes torch's compiler sum gradients in other kernels than in the tests above."""
    shape = Architecture(depth=2, width=512, heads=8, head_dim=64, hidden=2048, topology=topology)
    x, gradient_vectors = torch.randn(64, 128, 512, device=GPU), []
    for with_compile in (False, True):
        torch.manual_seed(0)
        torch.compiler.reset()
        stack = build_transformer(shape, STYLE, lambda block: SoftmaxAttention(causal=True)).to(GPU)
        if with_compile:
            compile_network(stack)
        with torch.autocast("cuda", torch.bfloat16):
            y = stack(x)
        gradients = torch.autograd.grad(y.float().square().mean(), list(stack.parameters()), materialize_grads=True)
        gradient_vectors.append(torch.cat([gradient.flatten().double() for gradient in gradients]))
    assert torch.cosine_similarity(*gradient_vectors, dim=0) > 0.99


def job_of(task: str, *settings: tuple[str, Scalar]) -> EvaluationJob:
    return EvaluationJob(task=task, architecture=load_task(task).base, preset="smoke", settings=(ON_IT, *settings))


@pytest.mark.parametrize("task", [*WITHOUT_DATA, "goal-point-maze"])
def test_a_task_trains_on_a_gpu(task: str) -> None:
    if task.startswith("goal"):
        pytest.importorskip("gymnasium_robotics")
    gc.collect()  # free networks of earlier tests now
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    row = evaluate(job_of(task))
    assert (row.status, row.error) == ("complete", None)
    assert torch.cuda.max_memory_allocated() > before
    assert row.provenance["device"] == torch.cuda.get_device_name(GPU)


@pytest.mark.parametrize("task", ["digits-vit", "stdlib-lm"])
def test_a_compiled_training_in_bf16_gives_nearly_the_same_loss(task: str) -> None:
    """bf16 alone changes the loss of a short image training by 9 % on CPUs."""
    plain = evaluate(job_of(task))
    bf16 = evaluate(job_of(task, ("compile", True), ("precision", "bf16-mixed")))
    assert (bf16.status, bf16.error) == ("complete", None)
    by_images = 3 * hypot(plain.metrics["loss_se"], bf16.metrics["loss_se"]) if task == "digits-vit" else 0.0
    assert bf16.metrics["loss"] == pytest.approx(plain.metrics["loss"], rel=0.05, abs=by_images)


def test_the_same_training_twice_gives_the_same_metrics() -> None:
    first, second = (evaluate(job_of("digits-vit")) for _ in range(2))
    assert (first.metrics, first.test) == (second.metrics, second.test)


def test_a_profile_has_energy_memory_and_kernel_shares(tmp_path: Path) -> None:
    wide = Architecture(depth=4, width=512, heads=8, head_dim=64, hidden=2048)
    recipe = replace(DigitsViT.presets["smoke"], precision="bf16-mixed", accelerator="auto")
    profiles = profile(DigitsViT(), wide, recipe, 256, tmp_path / "trace")
    assert profiles["device"] == torch.cuda.get_device_name(GPU)
    assert "profile_note" not in profiles
    assert 1e-3 < profiles["energy_j"] < 1e3  # type: ignore[operator]  # a number
    state = 16 * 4 * 12 * 512**2  # bytes of weights, gradients and AdamW's moments, embeddings left out
    assert profiles["peak_memory_bytes"] > state  # type: ignore[operator]  # a number
    for share in ("gpu_utilisation", "sm_efficiency", "occupancy", "tensor_core_share", "time_kernel"):
        assert 0 < profiles[share] <= 1, share  # type: ignore[operator]  # a number
    assert profiles["step_ms"] > profiles["latency_ms"] > 0  # type: ignore[operator]  # numbers


def test_a_training_without_enough_memory_fails_and_frees_it() -> None:
    wide = Architecture(depth=8, width=512, heads=8, head_dim=64, hidden=2048)  # 400 MB with AdamW's moments
    before = torch.cuda.memory_reserved()
    torch.cuda.set_per_process_memory_fraction(2**28 / torch.cuda.get_device_properties(GPU).total_memory)
    try:
        row = evaluate(replace(job_of("digits-vit"), architecture=wide))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert row.status == "failed"
    assert str(row.error).partition(":")[0] == "out-of-memory"
    assert is_gpu_error(row)
    assert torch.cuda.memory_reserved() <= before
    assert evaluate(job_of("digits-vit")).status == "complete"


def test_load_of_a_gpu_includes_memory_in_use() -> None:
    memory = torch.empty(2**30, dtype=torch.uint8, device=GPU)
    load_with = gpu_load.read_load(0)
    assert 2**30 / torch.cuda.get_device_properties(GPU).total_memory <= load_with.memory <= 1
    assert 0 <= load_with.busy <= 1
    del memory
    torch.cuda.empty_cache()


def test_trials_that_share_a_gpu_give_the_same_metrics_as_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_load, "ENOUGH_LOADS", 2)
    monkeypatch.setattr(shared_gpus, "STARTING_S", 0.0)

    def metrics_of(study: str, **how: Any) -> dict[str, Any]:
        how |= {"storage": f"sqlite:///{tmp_path}/{study}.db", "settings": "accelerator=auto"}
        rows = nas.search("digits-vit", preset="smoke", trials=8, sampler="random", **how).rows()
        return {str(row.architecture): row.metrics for row in rows}

    assert metrics_of("shared", resources=nas.Resources(3, trial_gpus="auto")) == metrics_of(
        "alone", resources=nas.Resources(1)
    )
    assert re.search(r"\bGPU 0\b.*\b2\b", capsys.readouterr().err)  # two evaluations at once


def test_tensor_core_kernels_are_recognized_by_name(tmp_path: Path) -> None:
    """bf16 matrix products run on tensor cores and elementwise work does not, by today's kernel names."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    from nas.costs.profile.kernels import on_tensor_cores

    a = torch.randn(1024, 1024, device=GPU, dtype=torch.bfloat16)
    kernels: dict[str, set[str]] = {}
    for kind, call in {"product": lambda: a @ a, "sum": lambda: a + a}.items():
        call()
        with torch_profile(activities=[ProfilerActivity.CUDA]) as profiler:
            call()
            torch.cuda.synchronize()
        profiler.export_chrome_trace(str(tmp_path / kind))
        events = json.loads((tmp_path / kind).read_text())["traceEvents"]
        kernels[kind] = {event["name"] for event in events if event.get("cat") == "kernel"}
    assert kernels["product"]
    assert all(map(on_tensor_cores, kernels["product"])), kernels
    assert kernels["sum"]
    assert not any(map(on_tensor_cores, kernels["sum"])), kernels
