"""What published recipes keep weight decay from, by what their papers and code say."""

from dataclasses import replace

import pytest
import torch

from nas.jobs import fresh_task
from search_spaces.topologies.decay import split_by_decay


@pytest.mark.parametrize(
    ("task", "preset", "exempt"),
    [
        ("openwebtext-lm", "rmt-46m", {"embedding.tokens.weight", "embedding.positions", "head.weight"}),
        ("openwebtext-lm", "transformer-49m", {"embedding.tokens.weight", "embedding.positions", "head.weight"}),
        ("imagenet-vit", "paper", {"embedding.first", "embedding.positions"}),
        ("tinystories-lm", "paper", set()),  # nanoGPT's, which decays them all
    ],
)
def test_matrices_that_are_not_decayed_are_these(task: str, preset: str, exempt: set[str]) -> None:
    of = fresh_task(task, None)
    with torch.device("meta"):
        network = of.build(replace(of.bases.get(preset, of.base), depth=1))
    kept = {id(one) for one in split_by_decay(network, of.presets[preset].without_decay)[1]}
    assert {name for name, one in network.named_parameters() if id(one) in kept and one.ndim > 1} == exempt


@pytest.mark.parametrize("model", ["xcit_nano_12_p16_224", "deit_tiny_patch16_224", "tnt_s_patch16_224"])
def test_timms_names_are_among_them(model: str) -> None:
    import timm

    network = timm.create_model(model)
    exempt = {name for name, one in network.named_parameters() if name in network.no_weight_decay() and one.ndim > 1}
    assert exempt
    assert exempt <= {*fresh_task("imagenet-vit", None).presets["paper"].without_decay}
