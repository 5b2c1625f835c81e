"""Small networks to export, and helpers of tests of exports."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from nas.exporters.destination import Destination
from nas.exporters.export import ExportReport, export
from nas.exporters.export_format import TOLERANCE
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import Record
from tasks.data.batches import Inputs, tensors
from tasks.vision.digits import DigitsViT

TINY = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=16)
RECORD = Record(task="digits-vit", task_version=1, architecture=TINY, step=7, settings={"preset": "smoke"})


class MixedInputs(nn.Module):
    """Features, ids and a mask, by any way of calling; two outputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.map = nn.Embedding(3, 4), nn.Linear(5, 4)

    def forward(self, x: Tensor, ids: Tensor, mask: Tensor) -> dict[str, Tensor]:
        words = self.table(ids.flatten()).unflatten(0, ids.shape) * mask[..., None]
        return {"sum": self.map(x) + words.sum(1), "most": words.amax(1)}


MIXED_INPUTS = {"x": torch.zeros(1, 5), "ids": torch.zeros(1, 6, dtype=torch.long), "mask": torch.ones(1, 6).bool()}


class Steps(nn.Module):
    """Takes a number that is no row of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(1, 2)

    def forward(self, t: Tensor) -> Tensor:
        return self.map(t[:, None] / 7.0)


def needs_onnx() -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)


def redraw(network: nn.Module) -> nn.Module:
    """Perturb every weight: topologies begin as the residual network, which would hide their effect."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return network


def images(topology: str) -> tuple[nn.Module, Inputs]:
    task = DigitsViT()
    return redraw(task.build(replace(TINY, topology=topology))), task.example()


def export_network(network: nn.Module, example: Inputs, path: Path) -> ExportReport:
    report = export(network, example, Destination.parse(path), RECORD)
    assert report.difference <= (0 if path.suffix == ".safetensors" else TOLERANCE)
    assert report.size == path.stat().st_size
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return report


def outputs_of(path: Path, *inputs: Tensor) -> list[Tensor]:
    """The outputs of a file's graph in its own runtime."""
    if path.suffix == ".pt2":
        return tensors(torch.export.load(path).module()(*inputs))
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [entry.name for entry in session.get_inputs()]
    return [
        torch.from_numpy(y) for y in session.run(None, {name: x.numpy() for name, x in zip(names, inputs, strict=True)})
    ]
