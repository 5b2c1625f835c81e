"""Breakdown of a network's costs by layer and by operator."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas.costs.breakdown import by_layer, by_operator
from nas.costs.count import count
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.families import MODEL_FAMILIES, base_of, build_family
from tasks.load import load_task
from toy_tasks import Toy

SMALL = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=40, topology="grn-v1")


def test_parts_of_a_vit() -> None:
    records = by_layer(load_task("digits-vit"), SMALL)
    assert [(record["part"], record["kind"]) for record in records] == [
        ("embedding", "PatchTokens"),
        ("stack.layers.0", "Attention"),
        ("stack.layers.1", "FeedForward"),
        ("stack.layers.2", "Attention"),
        ("stack.layers.3", "FeedForward"),
        ("stack.topology", "grn-v1"),
        ("head", "Linear"),
    ]
    by_part = {record["part"]: record for record in records}
    tokens, width = 17, 16
    assert by_part["stack.topology"]["params"] == 1 + 2 + 3 + 2 * width
    assert by_part["stack.layers.1"]["macs"] == tokens * 2 * width * 40
    assert by_part["stack.layers.0"]["macs"] == tokens * 4 * width * width + 2 * tokens * tokens * width
    assert by_part["head"] == {"part": "head", "kind": "Linear", "params": 170, "macs": 160, "flops": 320}


def test_matrix_work_of_a_topology_is_not_that_of_layers() -> None:
    task, layers = load_task("digits-vit"), ["stack.layers.0", "stack.layers.3"]
    plain = {record["part"]: record for record in by_layer(task, replace(SMALL, topology="resnet"))}
    hyper = {record["part"]: record for record in by_layer(task, replace(SMALL, topology="hyper"))}
    assert [hyper[part] for part in layers] == [plain[part] for part in layers]
    assert plain["stack.topology"]["macs"] == 0 < hyper["stack.topology"]["macs"]


def test_shared_parameters_belong_to_the_first_part() -> None:
    records = {record["part"]: record for record in by_layer(load_task("stdlib-lm"), load_task("stdlib-lm").base)}
    assert records["embedding"]["params"] > 0 == records["embedding"]["macs"]
    assert records["head"]["macs"] > 0 == records["head"]["params"]


def test_operators_have_the_parameters_of_their_modules() -> None:
    records = {record.pop("operator"): record for record in by_operator(load_task("digits-vit"), SMALL)}
    tokens, width = 17, 16
    attention = 2 * 2 * tokens * tokens * width
    norms, weights, embeddings = 5 * 2 * width, 1 + 2 + 3, width + tokens * width
    assert records["attention"] == {"params": 0, "macs": attention, "flops": 2 * attention}
    assert records["none"] == {"params": norms + weights + embeddings, "macs": 0, "flops": 0}
    assert set(records) == {"linear", "attention", "none"}


class TimmTask(Toy):
    """A task of any timm model."""

    def build(self, architecture: Architecture) -> nn.Module:
        return build_family(architecture, (3, 224, 224), 10)

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, 3, 224, 224),)

    def closed_form(self, architecture: Architecture) -> None:
        return None


MODELS = {
    "VisionTransformer": "deit_tiny_patch16_224",
    "Xcit": "xcit_nano_12_p16_224",
    "TNT": "tnt_s_patch16_224",
    "DaVit": "davit_tiny",
    "VOLO": "volo_d1_224",
}


QUICK = ("VisionTransformer", "VOLO")
OTHERS = [pytest.param(family, marks=pytest.mark.slow) for family in MODEL_FAMILIES if family not in QUICK]


@pytest.mark.parametrize("family", [*QUICK, *OTHERS])
def test_parts_of_timm_models_are_blocks_that_sum_to_the_whole(family: str) -> None:
    depth = 2 if family in ("VisionTransformer", "Xcit", "TNT") else 5
    architecture = replace(base_of(MODELS[family]), depth=depth)
    layers, operators = by_layer(TimmTask(), architecture), by_operator(TimmTask(), architecture)
    costs = count(TimmTask(), architecture)
    assert totals(layers) == totals(operators) == (costs.params, costs.macs, costs.flops)
    blocks = max({record["kind"] for record in layers}, key=[record["kind"] for record in layers].count)
    assert sum(record["kind"] == blocks for record in layers) > 1


def totals(records: list[dict[str, Any]]) -> tuple[int, ...]:
    assert all(value >= 0 for record in records for value in record.values() if isinstance(value, int))
    return tuple(sum(record[column] for record in records) for column in ("params", "macs", "flops"))


def test_parts_of_any_other_network_are_its_modules() -> None:
    assert [record["part"] for record in by_layer(Toy(), replace(Toy.base, depth=3))] == [
        "resnet0",
        "resnet1",
        "resnet2",
    ]
