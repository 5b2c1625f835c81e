"""Folders that timm loads: same scores in a process without this package, and reasons where timm has no such model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from PIL import Image
from torch import Tensor, nn

from expect import raises
from foreign_programs import run_elsewhere
from grouped import grouped
from nas.evaluation.trained_network import TrainedNetwork
from nas.exporters import timm_checkpoint
from nas.exporters.destination import TIMM, Destination
from nas.exporters.export import ExportReport, export
from nas.exporters.export_format import TOLERANCE
from nas.exporters.formats import format_for
from nas.exporters.programs import program_of
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.families import base_of, build_family
from tasks.base import Task
from tasks.data.input_files import read_image
from tasks.vision.cifar10 import Cifar10ViT
from tasks.vision.digit_ranks import DigitRanksViT
from tasks.vision.digits import DigitsViT
from tasks.vision.imagenet import ImageNetViT
from tasks.vision.mnist1d import MNIST1DViT
from toy_networks import RECORD, TINY, redraw

NARROW = Architecture(depth=1, width=12, heads=3, head_dim=4, hidden=7)  # hidden / width is no binary fraction


def export_task(task: Task, architecture: Architecture, folder: Path, *, raw: bool = False) -> tuple[ExportReport, Any]:
    """Export a task's network with random weights; return the network that the report is of, too."""
    network: nn.Module = redraw(task.build(architecture)).eval()
    example = task.example()
    if not raw:
        network = TrainedNetwork(network, task)
        example = network.example()
    record = replace(RECORD, task=task.name, architecture=architecture)
    return export(network, example, Destination(TIMM, folder), record), network


def close(x: Tensor, y: Tensor) -> None:
    """Assert equality within the rounding of fp32: timm adds in another order."""
    torch.testing.assert_close(x, y, rtol=0, atol=float(1e-5 * y.abs().max()))


@pytest.mark.parametrize("task", [DigitsViT(), Cifar10ViT()], ids=lambda task: task.name)
def test_timm_alone_gives_the_same_scores_of_an_image(task: Task, tmp_path: Path) -> None:
    report, network = export_task(task, TINY, tmp_path / "net")
    channels, side = network.input_format.channels, network.input_format.width
    mode = "L" if channels == 1 else "RGB"
    pixels = (torch.arange(side * side * channels) * 31 % 256).to(torch.uint8).view(side, side, channels)
    Image.fromarray(pixels.squeeze(-1).numpy(), mode).save(tmp_path / "image.png")
    numbers = torch.randn(3, channels, side, side)
    program = f"""
{program_of(report, Path("net")).replace("IMAGE", "image.png")}
answers["of_image"] = scores
answers["scores"] = network(inputs["numbers"])
"""
    answers = run_elsewhere(program, {"numbers": numbers}, tmp_path)
    with torch.no_grad():
        close(answers["scores"], network.network(numbers))
        close(answers["of_image"], network(read_image(tmp_path / "image.png", network.input_format)[None]))


def test_the_folder_has_sizes_preprocessing_classes_and_origin(tmp_path: Path) -> None:
    report, _ = export_task(DigitsViT(), NARROW, tmp_path / "net")
    assert sorted(path.name for path in report.file.iterdir()) == ["config.json", "model.safetensors"]
    assert report.size == sum(path.stat().st_size for path in report.file.iterdir())
    assert (report.format, report.axes, report.tolerance) == (TIMM, ("batch",), TOLERANCE)
    assert "0.305" in report.inputs
    config = json.loads((report.file / "config.json").read_text())
    assert config["label_names"] == list("0123456789")
    assert config["nas"]["architecture"] == NARROW.record()
    pretrained = config["pretrained_cfg"]
    assert (pretrained["mean"], pretrained["std"], pretrained["input_size"]) == ([0.305], [0.376], [1, 8, 8])
    assert not {"tag", "license", "hf_hub_id", "url", "file"} & set(pretrained)  # of timm's weights, or of this machine
    loaded = timm.create_model(f"local-dir:{report.file}", pretrained=True)
    assert sum(x.numel() for x in loaded.parameters()) == report.params


def test_hidden_features_are_exact_for_every_ratio() -> None:
    for width in range(1, 130):
        for hidden in range(1, 4 * width):
            ratio = timm_checkpoint._mlp_ratio(Architecture(depth=1, width=width, hidden=hidden))
            assert int(width * ratio) == hidden


def test_raw_networks_have_mean_0_and_std_1(tmp_path: Path) -> None:
    report, _ = export_task(DigitsViT(), TINY, tmp_path / "net", raw=True)
    assert (report.inputs, report.class_names) == ("float32 [batch, 1, 8, 8]", ())
    config = json.loads((report.file / "config.json").read_text())
    assert (config["pretrained_cfg"]["mean"], config["pretrained_cfg"]["std"]) == ([0.0], [1.0])
    assert "label_names" not in config


class Gamma(DigitsViT):
    def preprocess(self, inputs: Tensor) -> Tensor:
        return (inputs / 255) ** 2.2


def test_preprocessing_that_a_config_cannot_hold_is_named(tmp_path: Path) -> None:
    report, _ = export_task(Gamma(), TINY, tmp_path / "net")
    assert "preprocessing" in report.inputs
    assert report.input_format is None
    assert "create_transform" not in program_of(report, Path("net"))
    config = json.loads((report.file / "config.json").read_text())
    assert (config["pretrained_cfg"]["mean"], config["pretrained_cfg"]["std"]) == ([0.0], [1.0])


def test_the_crop_of_the_task_is_that_of_timm(tmp_path: Path) -> None:
    report, _ = export_task(ImageNetViT(), replace(TINY, depth=1), tmp_path / "net")
    config = timm.data.resolve_model_data_config(timm.create_model(f"local-dir:{report.file}", pretrained=True))
    assert (config["crop_pct"], config["interpolation"], *config["input_size"]) == (0.875, "bicubic", 3, 224, 224)


UNLIKE: list[tuple[Task, dict[str, Any], dict[str, Any]]] = [
    (DigitsViT(), {"topology": "dca(k=2)"}, {"problem": "topology", "topology": "dca(k=2)"}),
    (DigitsViT(), {"heads": (2, 1)}, {"problem": "blocks", "blocks": "heads=2/1"}),
    (DigitsViT(), {"head_dim": 4}, {"problem": "heads", "heads": 2, "head_dim": 4, "width": 16}),
    (MNIST1DViT(), {}, {"problem": "class", "network": "SignalViT"}),
    (DigitRanksViT(), {}, {"problem": "class", "network": "RankingViT"}),
]


def test_networks_without_counterpart_are_errors(tmp_path: Path) -> None:
    with grouped() as case:
        for task, changes, fields in UNLIKE:
            with case(f"{task.name} {changes}"), raises("unsupported", option="--to", **fields):
                export_task(task, TINY.with_fields(changes), tmp_path / "net", raw=True)
            assert list(tmp_path.iterdir()) == []


def test_weights_in_other_places_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = timm_checkpoint._weight_names

    def swapped(depth: int) -> dict[str, str]:
        first, second = (f"blocks.{block}.mlp.fc1.weight" for block in (0, 1))
        return {**names(depth), first: names(depth)[second], second: names(depth)[first]}

    monkeypatch.setattr(timm_checkpoint, "_weight_names", swapped)
    with raises("unsupported", option="--to", problem="difference", most=TOLERANCE):
        export_task(DigitsViT(), TINY, tmp_path / "net")
    assert list(tmp_path.iterdir()) == []


SLOW_MODELS = ("xcit_nano_12_p16_224", "tnt_s_legacy_patch16_224", "davit_tiny")


@pytest.mark.parametrize(
    "model", ["deit_tiny_patch16_224", *(pytest.param(model, marks=pytest.mark.slow) for model in SLOW_MODELS)]
)
def test_models_of_timm_keep_their_names(model: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    architecture = replace(base_of(model), depth=4)
    network = build_family(architecture, (3, 224, 224), 10)
    record = replace(RECORD, architecture=architecture)
    report = export(network, torch.zeros(1, 3, 224, 224), Destination(TIMM, tmp_path / "net"), record)
    assert json.loads((report.file / "config.json").read_text())["architecture"] == model


class Wrapper(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images)


def test_a_network_around_a_model_of_timm_is_an_error(tmp_path: Path) -> None:
    architecture = replace(base_of("deit_tiny_patch16_224"), depth=1)
    network = Wrapper(build_family(architecture, (3, 224, 224), 10))
    record = replace(RECORD, architecture=architecture)
    with raises("unsupported", option="--to", problem="class", network="Wrapper"):
        export(network, torch.zeros(1, 3, 224, 224), Destination(TIMM, tmp_path / "net"), record)
    assert format_for(network, record) == ".pt2"


def test_volo_is_an_error(tmp_path: Path) -> None:
    architecture = replace(base_of("volo_d1_224"), depth=4)
    with torch.device("meta"):
        network = build_family(architecture, (3, 224, 224), 10)
    with pytest.raises(timm_checkpoint.ExportError):
        timm_checkpoint.check_timm(network, replace(RECORD, architecture=architecture))
