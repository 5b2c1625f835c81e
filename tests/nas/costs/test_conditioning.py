"""Condition numbers, compared with explicit Jacobians and with the Gram matrix by its formula."""

import math
from dataclasses import replace
from statistics import median

import pytest
import torch
from torch import Tensor, nn

from expect import raises
from grouped import grouped
from nas.budget.objectives import measures_for, objective_directions
from nas.costs import conditioning
from nas.costs.conditioning import AttentionLayer, conditioning_metrics, layer_conditioning
from nas.evaluation.evaluate import evaluate
from nas.request.job import EvaluationJob
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import Attention, SoftmaxAttention
from search_spaces.layers.norm import Norm
from search_spaces.layers.nystrom import Nystrom
from search_spaces.models.encoder import EncoderSizes, build_encoder
from search_spaces.models.vit import build_vit

SHAPES = [(3, 4, 8, 10), (1, 4, 8, 16), (2, 3, 9, 7)]  # heads, head dim, tokens, width


def layer(
    heads: int, head_dim: int, tokens: int, width: int, input_mode: str = "shared", seed: int = 0
) -> AttentionLayer:
    torch.manual_seed(seed)
    attend = SoftmaxAttention(causal=False)
    module = Attention(width, heads, head_dim, attend, Norm("layer", 1e-6), input_mode, bias=True)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) / math.sqrt(width))
    ports = 1 if input_mode == "shared" else 3
    return AttentionLayer(module, tuple(torch.randn(ports, 1, tokens, width).double()))


def naive_output(x: Tensor, weights: list[Tensor], biases: list[Tensor], p: Tensor, heads: int) -> Tensor:
    """Output [N*D] by heads; weights: matrices [H*K, D] of queries, keys and values; p: that of the output."""
    q, k, v = (x @ w.T + b for w, b in zip(weights, biases, strict=True))
    size = q.shape[1] // heads
    out = []
    for h in range(heads):
        head = slice(h * size, (h + 1) * size)
        out.append(torch.softmax(q[:, head] @ k[:, head].T / math.sqrt(size), dim=-1) @ v[:, head])
    return (torch.cat(out, dim=1) @ p.T).flatten()


def pieces(attention: AttentionLayer) -> tuple[Tensor, list[Tensor], list[Tensor], Tensor]:
    """Inputs after the norm, the three matrices, their biases, and the output matrix."""
    project, out = attention.module.project, attention.module.out
    weights, biases = project.qkv.weight.detach(), project.qkv.bias.detach()
    return project.norm(attention.inputs[0][0]).detach(), [*weights.chunk(3)], [*biases.chunk(3)], out.weight.detach()


def gram(attention: AttentionLayer, heads: int) -> Tensor:
    """J J' by its formula: a sum over heads of the parts of outputs, values, queries and keys."""
    x, (wq, wk, wv), (bq, _, bv), p = pieces(attention)
    (tokens, width), size = x.shape, len(wq) // heads
    q_all, k_all, v_all = x @ wq.T + bq, x @ wk.T, x @ wv.T + bv
    total = torch.zeros(tokens, width, tokens, width).double()
    for h in range(heads):
        head = slice(h * size, (h + 1) * size)
        q, k, v, out = q_all[:, head], k_all[:, head], v_all[:, head], p[:, head]
        s = torch.softmax(q @ k.T / math.sqrt(size), dim=-1)
        a, averages, m = s @ v, s @ x, v @ out.T
        e = torch.stack([m.T @ (row.diag() - row.outer(row)) @ x for row in s]) / math.sqrt(size)  # [N, D, D]
        b = e @ wk[head].T
        total += torch.einsum("nm,ab->namb", a @ a.T, torch.eye(width).double())
        total += torch.einsum("nm,ab->namb", averages @ averages.T, out @ out.T)
        total += torch.einsum("nm,nai,mbi->namb", x @ x.T, b, b)
        total += torch.einsum("nm,nai,mbi->namb", q @ q.T, e, e)
    return total.flatten(2).flatten(0, 1)


def test_the_condition_number_is_that_of_the_explicit_jacobian() -> None:
    with grouped() as case:
        for shape in SHAPES:
            with case(str(shape)):
                heads, head_dim, tokens, width = shape
                attention = layer(*shape)
                jacobian, values = layer_conditioning(attention), singular_values(attention, heads)
                inner = heads * head_dim
                defect = max(0, tokens - inner) * max(0, width - inner)
                assert (jacobian.rank, jacobian.max_rank) == (tokens * width - defect, tokens * width)
                assert values[jacobian.rank - 1] > 1e-9 * values[0]
                assert jacobian.number == pytest.approx((values[0] / values[jacobian.rank - 1]).item(), rel=1e-6)


def singular_values(attention: AttentionLayer, heads: int) -> Tensor:
    """Singular values of the explicit Jacobian."""
    x, weights, biases, p = pieces(attention)
    jacobians = torch.autograd.functional.jacobian(
        lambda *ws: naive_output(x, list(ws[:3]), biases, ws[3], heads), (*weights, p)
    )
    return torch.linalg.svdvals(torch.cat([j.flatten(1) for j in jacobians], dim=1))


def test_singular_values_are_roots_of_the_eigenvalues_of_the_gram_matrix() -> None:
    with grouped() as case:
        for shape in SHAPES:
            with case(str(shape)):
                attention = layer(*shape)
                eigenvalues = torch.linalg.eigvalsh(gram(attention, shape[0])).flip(0)
                rank = layer_conditioning(attention).rank
                expected = (eigenvalues[0] / eigenvalues[rank - 1]).sqrt().item()
                assert layer_conditioning(attention).number == pytest.approx(expected, rel=1e-3)


def test_heads_narrower_than_the_tokens_have_a_null_space_of_known_size() -> None:
    result = layer_conditioning(layer(1, 4, 8, 16))
    assert result.max_rank - result.rank == (8 - 4) * (16 - 4)
    assert math.isfinite(result.number)


def test_a_layer_with_three_inputs() -> None:
    attention = layer(2, 4, 6, 8, "per-port")
    weights = {name: attention.module.get_parameter(name).detach() for name in attention.weights}

    def outputs(*parameters: Tensor) -> Tensor:
        return torch.func.functional_call(
            attention.module, dict(zip(weights, parameters, strict=True)), attention.inputs
        ).flatten()

    jacobians = torch.autograd.functional.jacobian(outputs, tuple(weights.values()))
    values = torch.linalg.svdvals(torch.cat([j.flatten(1) for j in jacobians], dim=1))
    assert layer_conditioning(attention).number == pytest.approx((values[0] / values[47]).item(), rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_the_iterative_estimate_agrees_with_the_exact_number(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = layer(2, 4, 6, 8)
    expected = layer_conditioning(attention)
    monkeypatch.setattr(conditioning, "EXACT", 0)
    estimate = layer_conditioning(attention)
    assert estimate.number == pytest.approx(expected.number, rel=0.02)
    assert (estimate.rank, estimate.heads) == (expected.rank, expected.heads)


def test_more_heads_of_the_same_dimension_condition_attention_better() -> None:
    numbers = [
        median(layer_conditioning(layer(heads, 4, 8, 16, seed=seed)).number for seed in range(12))
        for heads in (2, 4, 8, 16)
    ]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > 10 * numbers[-1]


@pytest.mark.parametrize("attention", [None, Nystrom(4, kernel=3)])
def test_measure_averages_blocks_and_does_not_change_the_network(attention: Nystrom | None) -> None:
    torch.manual_seed(0)
    sizes = EncoderSizes(vocabulary=9, context=12, classes=3, attention=attention)
    network = build_encoder(Architecture(depth=2, width=8, heads=3, head_dim=4, hidden=8), sizes).train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    ids = torch.randint(1, 9, (3, 12))
    ids[0, 7:] = 0
    columns = conditioning_metrics(network, (ids,))
    assert columns["condition_number"] == pytest.approx(
        (columns["condition_number_1"] + columns["condition_number_2"]) / 2
    )
    assert columns["condition_rank_share"] == 1
    assert network.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert not any(module._forward_pre_hooks for module in network.modules())


def test_inputs_are_a_tensor_a_tuple_or_a_mapping() -> None:
    torch.manual_seed(0)
    sizes = EncoderSizes(vocabulary=9, context=12, classes=3)
    network = build_encoder(Architecture(depth=1, width=8, heads=3, head_dim=4, hidden=8), sizes)
    ids = torch.randint(1, 9, (1, 7))
    columns = conditioning_metrics(network, ids)
    assert columns == conditioning_metrics(network, (ids,)) == conditioning_metrics(network, {"ids": ids})


def test_padding_does_not_count() -> None:
    torch.manual_seed(0)
    sizes = EncoderSizes(vocabulary=9, context=12, classes=3)
    network = build_encoder(Architecture(depth=1, width=8, heads=3, head_dim=4, hidden=8), sizes)
    ids = torch.randint(1, 9, (1, 7))
    with_padding = torch.cat((ids, torch.zeros(1, 5, dtype=torch.long)), dim=1)
    assert conditioning_metrics(network, (with_padding,)) == pytest.approx(
        conditioning_metrics(network, (ids,)), rel=1e-3
    )


def test_networks_without_own_projections_or_values_are_errors() -> None:
    rmt = Architecture(depth=1, width=8, heads=2, head_dim=4, hidden=8, topology="rmt(keys=4)")
    with raises("unsupported", option="conditioning", needs="projections"):
        conditioning_metrics(build_vit(rmt, (1, 4, 4), 2, 3), (torch.zeros(1, 1, 4, 4),))
    svformer = replace(rmt, topology="svformer")
    with raises("unsupported", option="conditioning", needs="values"):
        conditioning_metrics(build_vit(svformer, (1, 4, 4), 2, 3), (torch.zeros(1, 1, 4, 4),))
    with raises("unsupported", option="conditioning", needs="attention"):
        conditioning_metrics(nn.Linear(2, 2), (torch.zeros(1, 2),))


def test_objectives_name_their_measure() -> None:
    objectives = objective_directions(["accuracy", "condition_number"], {"accuracy": "max"})
    assert objectives == {"accuracy": "max", "condition_number": "min"}
    assert measures_for(objectives) == ("conditioning",)
    assert measures_for(["accuracy", "flops"]) == ()


@pytest.mark.parametrize(("topology", "status"), [("resnet", "complete"), ("rmt(keys=4)", "failed")])
def test_an_evaluation_has_the_condition_number_of_its_trained_network(topology: str, status: str) -> None:
    architecture = Architecture(depth=1, width=16, heads=2, head_dim=8, hidden=16, topology=topology)
    job = EvaluationJob(
        task="digits-vit",
        architecture=architecture,
        preset="smoke",
        settings=(("epochs", 1),),
        seed=0,
        measures=("conditioning",),
    )
    row = evaluate(job)
    assert row.status == status, row.error
    assert ("condition_number" in row.columns()) == (status == "complete")
    assert status == "complete" or row.steps == 0
