"""Weights without decay in published recipes."""

from dataclasses import replace

import torch

from grouped import grouped
from nas.request.job import reload_task
from search_spaces.topologies.decay import split_by_decay


def test_matrices_without_weight_decay_are_the_published_ones() -> None:
    embeddings = {"embedding.tokens.weight", "embedding.positions", "head.weight"}
    exemptions: list[tuple[str, str, set[str]]] = [
        ("openwebtext-lm", "rmt-46m", embeddings),
        ("openwebtext-lm", "transformer-49m", embeddings),
        ("imagenet-vit", "paper", {"embedding.first", "embedding.positions"}),
        ("tinystories-lm", "paper", set()),  # nanoGPT decays all of them
    ]
    with grouped() as case:
        for task, preset, exempt in exemptions:
            with case(f"{task} {preset}"):
                of = reload_task(task, None)
                with torch.device("meta"):
                    network = of.build(replace(of.bases.get(preset, of.base), depth=1))
                ids = {id(p) for p in split_by_decay(network, of.presets[preset].without_decay)[1]}
                parameters = network.named_parameters()
                assert {name for name, p in parameters if id(p) in ids and p.ndim > 1} == exempt


def test_parameters_that_timm_does_not_decay_are_exempt() -> None:
    import timm

    with grouped() as case:
        for model in ("xcit_nano_12_p16_224", "deit_tiny_patch16_224", "tnt_s_patch16_224"):
            with case(model):
                with torch.device("meta"):
                    network = timm.create_model(model)
                parameters = network.named_parameters()
                exempt = {name for name, p in parameters if name in network.no_weight_decay() and p.ndim > 1}
                assert exempt
                assert exempt <= {*reload_task("imagenet-vit", None).presets["paper"].without_decay}
