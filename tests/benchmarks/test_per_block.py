"""The synthetic loss of the per-block benchmark covers all topologies of the space."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import per_block
from benchmarks.landscapes import BASE


def test_each_group_of_blocks_has_a_topology() -> None:
    groups = {
        "dca(k=2)": ["dca"] * 4,
        "resnet/ancre": ["resnet", "resnet", "ancre", "ancre"],
        "resnet/rmt/dca/ancre": ["resnet", "rmt", "dca", "ancre"],
        "resnet[0:9]+grn-v3[9:12]": ["resnet", "resnet", "resnet", "grn-v3"],
    }
    actual = {text: per_block.topologies_by_group(replace(BASE, depth=12, topology=text)) for text in groups}
    assert actual == groups


def test_topology_gains_more_after_itself_and_in_later_blocks() -> None:
    def loss(topology: str) -> float:
        return per_block.loss(replace(BASE, depth=12, topology=topology))

    assert loss("resnet[0:9]+grn-v3[9:12]") < loss("grn-v3[0:3]+resnet[3:12]") < loss("resnet")
    together, apart = "resnet[0:3]+grn-v3[3:9]+resnet[9:12]", "grn-v3[0:3]+resnet[3:9]+grn-v3[9:12]"
    assert loss(apart) - loss(together) == pytest.approx(0.01)  # the groups are as late on average


def test_every_member_has_a_loss() -> None:
    members, random = per_block.landscape().feasible, np.random.default_rng(0)
    for _ in range(30):
        architecture = members.space.candidate(members.draw(random)).architecture
        assert 0 < per_block.loss(architecture) < 3
