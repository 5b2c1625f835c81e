"""What published recipes keep weight decay from, by what their papers and code say."""

from dataclasses import replace

import torch

from grouped import grouped
from nas.request.job import reload_task
from search_spaces.topologies.decay import split_by_decay


def test_matrices_without_weight_decay_are_the_published_ones() -> None:
    learned = {"embedding.tokens.weight", "embedding.positions", "head.weight"}
    exemptions: list[tuple[str, str, set[str]]] = [
        ("openwebtext-lm", "rmt-46m", learned),
        ("openwebtext-lm", "transformer-49m", learned),
        ("imagenet-vit", "paper", {"embedding.first", "embedding.positions"}),
        ("tinystories-lm", "paper", set()),  # nanoGPT's, which decays them all
    ]
    with grouped() as case:
        for task, preset, exempt in exemptions:
            with case(f"{task} {preset}"):
                of = reload_task(task, None)
                with torch.device("meta"):
                    network = of.build(replace(of.bases.get(preset, of.base), depth=1))
                kept = {id(one) for one in split_by_decay(network, of.presets[preset].without_decay)[1]}
                named = network.named_parameters()
                assert {name for name, one in named if id(one) in kept and one.ndim > 1} == exempt


def test_parameters_that_timm_does_not_decay_are_exempt() -> None:
    import timm

    with grouped() as case:
        for model in ("xcit_nano_12_p16_224", "deit_tiny_patch16_224", "tnt_s_patch16_224"):
            with case(model):
                with torch.device("meta"):
                    network = timm.create_model(model)
                named = network.named_parameters()
                exempt = {name for name, one in named if name in network.no_weight_decay() and one.ndim > 1}
                assert exempt
                assert exempt <= {*reload_task("imagenet-vit", None).presets["paper"].without_decay}
