"""Every kind of model in every format: the file's outputs equal the network's."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.nystrom import Nystrom
from search_spaces.models.decoder import build_decoder
from search_spaces.models.encoder import EncoderSizes, build_encoder
from search_spaces.models.families import base_of, build_family
from search_spaces.models.residual_mlp import GoalAgent, Sizes
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.data.batches import Inputs
from toy_networks import TINY, export_network, images, outputs_of, redraw


def text(style: str, **changes: object) -> tuple[nn.Module, Inputs]:
    return redraw(build_decoder(replace(TINY, **changes), style, 50, 24)), torch.zeros(1, 24, dtype=torch.long)  # type: ignore[arg-type]


def test_a_topology_exports_to_pt2(tmp_path: Path) -> None:
    assert export_network(*images("rmt"), tmp_path / "a.pt2").axes == ("batch",)


@pytest.mark.slow
@pytest.mark.parametrize("topology", sorted({*TOPOLOGIES.names(), "dca(k=1)"}))
def test_every_topology_exports_to_every_format(topology: str, ending: str, tmp_path: Path) -> None:
    report = export_network(*images(topology), tmp_path / f"a{ending}")
    assert report.axes == (() if ending == ".safetensors" else ("batch",))


def test_an_exported_decoder_takes_texts_of_any_length(tmp_path: Path) -> None:
    network, example = text("llama", depth=1)
    assert export_network(network, example, tmp_path / "a.pt2").axes == ("batch", "tokens")
    ids = torch.randint(50, (4, 11))
    torch.testing.assert_close(outputs_of(tmp_path / "a.pt2", ids), [network(ids)])


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["dca", "rmt"])
@pytest.mark.parametrize("style", ["llama", "gpt2", "rmt", "lm1b"])
def test_decoders_export(style: str, topology: str, ending: str, tmp_path: Path) -> None:
    report = export_network(*text(style, topology=topology), tmp_path / f"a{ending}")
    assert report.axes == (() if ending == ".safetensors" else ("batch", "tokens"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:7 landmarks do not divide")
@pytest.mark.parametrize(
    ("attention", "texts", "axes"),
    [
        (None, 1, ("batch", "tokens")),
        (Nystrom(64, 5), 1, ("batch", "tokens")),
        (Nystrom(8, 5), 1, ("batch",)),
        (Nystrom(7, None, "batch"), 1, ("batch",)),  # 24 tokens get padding to 28
        (Nystrom(8, 5), 2, ("batch",)),
    ],
    ids=str,
)
def test_encoders_export(
    attention: Nystrom | None, texts: int, axes: tuple[str, ...], ending: str, tmp_path: Path
) -> None:
    sizes = EncoderSizes(vocabulary=50, context=24, classes=3, texts=texts, attention=attention)
    network = redraw(build_encoder(TINY, sizes))
    shape = (1, 24) if texts == 1 else (1, 2, 24)
    report = export_network(network, torch.ones(shape, dtype=torch.long), tmp_path / f"a{ending}")
    assert report.axes == (() if ending == ".safetensors" else axes)


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["resnet", "hyper", "rmt(values=8)", "grn-v3"])
def test_agents_export(topology: str, ending: str, tmp_path: Path) -> None:
    agent = redraw(GoalAgent(Architecture(depth=2, width=16, hidden=16, topology=topology), Sizes(5, 2, 3)))
    export_network(agent, tuple(torch.zeros(1, n) for n in (5, 2, 3)), tmp_path / f"a{ending}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "depth"),
    [
        ("deit_tiny_patch16_224", 2),
        ("xcit_nano_12_p16_224", 2),
        ("tnt_s_legacy_patch16_224", 2),
        ("davit_tiny", 4),
        ("volo_d1_224", 4),
    ],
)
def test_timm_models_export(model: str, depth: int, ending: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = build_family(replace(base_of(model), depth=depth), (3, 224, 224), 10)
    export_network(network, torch.zeros(1, 3, 224, 224), tmp_path / f"a{ending}")
