"""The contract of an export: calls of the network, contents of the files, and errors."""

import copy
import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from expect import raises
from nas.exporters import formats
from nas.exporters.destination import Destination
from nas.exporters.export import export, export_folder
from nas.exporters.export_format import ExportError, run_export_step
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import load_weights, save_checkpoint, weights_of
from tasks.vision.digits import DigitsViT
from toy_networks import MIXED_INPUTS, RECORD, TINY, MixedInputs, Steps, export_network, needs_onnx, outputs_of, redraw


def check_call(example: Any, file: Path) -> None:
    """Export a network with this example; the file's outputs equal the network's."""
    network = MixedInputs()
    report = export_network(network, example, file)
    assert report.axes == (() if file.suffix == ".safetensors" else ("batch", "tokens"))
    if file.suffix == ".onnx":
        inputs = torch.randn(2, 5), torch.randint(3, (2, 4)), torch.rand(2, 4) > 0.5
        torch.testing.assert_close(outputs_of(report.file, *inputs), list(network(*inputs).values()))


def test_a_network_is_called_with_a_mapping(ending: str, tmp_path: Path) -> None:
    check_call(MIXED_INPUTS, tmp_path / f"a{ending}")


@pytest.mark.parametrize("tuple_ending", [".safetensors", ".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
def test_a_network_is_called_with_a_tuple(tuple_ending: str, tmp_path: Path) -> None:
    if tuple_ending == ".onnx":  # its graph is made from that of .pt2
        needs_onnx()
    check_call(tuple(MIXED_INPUTS.values()), tmp_path / f"a{tuple_ending}")


# -- Files


def test_weights_are_exported_with_their_record(tmp_path: Path) -> None:
    task = DigitsViT()
    network = redraw(task.build(TINY))
    save_checkpoint(tmp_path / "kept", weights_of(network), replace(RECORD, task_version=task.version))
    before = torch.get_rng_state()
    report = export_folder(tmp_path / "kept", Destination.parse(tmp_path / "new" / "a.safetensors"), task)
    assert torch.equal(before, torch.get_rng_state())
    assert report.difference == 0.0
    with safe_open(report.file, framework="pt") as file:
        metadata = file.metadata()
    assert (metadata["task"], metadata["step"]) == ("digits-vit", "7")
    again = DigitsViT().build(Architecture(**json.loads(metadata["architecture"])))
    load_weights(again, load_file(report.file), "the file")
    x = torch.randn(3, 1, 8, 8)
    assert torch.equal(again(x), network(x))
    assert report.file.stat().st_mode & 0o077 == (tmp_path / "kept" / "architecture.json").stat().st_mode & 0o077


def test_a_checkpoint_of_another_task_or_version_is_an_error(tmp_path: Path) -> None:
    task = DigitsViT()
    weights = weights_of(task.build(TINY))
    for changes in ({"task": "moons"}, {"task_version": task.version + 1}):
        save_checkpoint(tmp_path / "kept", weights, replace(RECORD, **{"task_version": task.version, **changes}))  # type: ignore[arg-type]
        others = {name.removeprefix("task_"): value for name, value in changes.items()}
        fields = {"task": "digits-vit", "version": task.version, **others}
        with raises("mismatch", path=str(tmp_path / "kept"), expected=("digits-vit", task.version), **fields):
            export_folder(tmp_path / "kept", Destination.parse(tmp_path / "a.pt2"), task)


def test_a_file_has_metadata_and_no_paths_and_the_network_stays_as_it_is(ending: str, tmp_path: Path) -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)).bfloat16().train()
    before = copy.deepcopy(network.state_dict())
    file = tmp_path / f"a{ending}"
    export_network(network, torch.zeros(1, 4, dtype=torch.bfloat16), file)
    assert network.training
    assert all(parameter.requires_grad for parameter in network.parameters())
    after = network.state_dict()
    assert all(torch.equal(x, after[name]) and x.dtype == after[name].dtype for name, x in before.items())
    if ending == ".onnx":
        import onnx

        model = onnx.load(file)
        metadata = {entry.key: entry.value for entry in model.metadata_props}
        assert Architecture(**json.loads(metadata["architecture"])) == TINY
        assert [entry.name for entry in model.graph.output] == ["output"]
        assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    elif ending == ".pt2":
        with zipfile.ZipFile(file) as parts:
            assert not any(b".py" in parts.read(name) for name in parts.namelist())
            assert any(b"digits-vit" in parts.read(name) for name in parts.namelist())
    assert b".py" not in file.read_bytes()


def test_a_file_names_neither_the_data_nor_the_file_of_its_task(ending: str, tmp_path: Path) -> None:
    settings = {"preset": "smoke", "reference": "/private/task.py:Mine", "data": "/private/data"}
    to = Destination.parse(tmp_path / f"a{ending}")
    export(nn.Linear(4, 4), torch.zeros(1, 4), to, replace(RECORD, settings=settings))
    assert b"private" not in to.path.read_bytes()


class FixedBatch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(1, 2, 2).sum(1)


def test_a_batch_that_cannot_vary_has_no_axis(tmp_path: Path) -> None:
    assert export_network(FixedBatch(), torch.zeros(1, 4), tmp_path / "a.pt2").axes == ()


def test_a_network_is_built_with_its_recipe(tmp_path: Path) -> None:
    task = DigitsViT()
    settings = {"preset": "smoke", "recipe.batch": 7}
    record = replace(RECORD, task_version=task.version, settings=settings)
    recipes: list[Any] = []

    class RecordsRecipes(DigitsViT):
        def build_for_training(self, architecture: Architecture, recipe: Any) -> nn.Module:
            recipes.append(recipe)
            return self.build(architecture)

    save_checkpoint(tmp_path / "kept", weights_of(task.build(TINY)), record)
    export_folder(tmp_path / "kept", Destination.parse(tmp_path / "a.safetensors"), RecordsRecipes())
    assert recipes == [replace(DigitsViT.presets["smoke"], batch=7)]


# -- Errors


class Random(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


class NotANumber(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / 0


class Untranslatable(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.eigvalsh(x @ x.mT)


INEXACT: list[Any] = [
    (Random(), ".pt2", {"problem": "difference", "most": 1e-5}),
    (Random(), ".safetensors", {"problem": "difference", "most": 0.0}),
    (Branch(), ".pt2", {"cause": "GuardOnDataDependentSymNode"}),
    (NotANumber(), ".pt2", {"problem": "not-finite"}),
    pytest.param(Untranslatable(), ".onnx", {"cause": "DispatchError"}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("network", "ending", "fields"), INEXACT)
def test_a_network_that_cannot_be_exact_leaves_no_file(
    network: nn.Module, ending: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    if ending == ".onnx":
        needs_onnx()
    path = tmp_path / f"a{ending}"
    path.write_text("what stood there")
    with raises("unsupported", option="--to", path=str(path), **fields):
        export(network, torch.ones(1, 3, 3), Destination.parse(path), RECORD)
    assert path.read_text() == "what stood there"
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_error_names_its_cause() -> None:
    def work() -> None:
        try:
            {}["inner"]
        except KeyError as error:
            raise RuntimeError("outer") from error

    with pytest.raises(ExportError) as info:
        run_export_step(work)
    assert info.value.fields == {"cause": "KeyError"}
    assert "inner" in str(info.value)


class Shapes(nn.Module):
    """Computes something else for few tokens, which an ONNX graph cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4)

    def forward(self, ids: Tensor) -> Tensor:
        words = self.table(ids)
        return words.sum(1) if ids.shape[1] > 3 else words.mean(1)


def test_a_graph_that_is_wrong_for_short_texts_has_a_fixed_length(tmp_path: Path) -> None:
    needs_onnx()
    report = export_network(Shapes(), torch.zeros(1, 8, dtype=torch.long), tmp_path / "a.onnx")
    assert report.axes == ("batch",)


def test_weights_that_read_back_differently_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def save_inexactly(weights: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
        save_file({name: x * (1 + 2e-7) for name, x in weights.items()}, path, metadata)

    monkeypatch.setattr(formats, "save_file", save_inexactly)
    with raises("unsupported", option="--to", problem="difference", most=0.0):
        export(nn.Linear(9, 9), torch.ones(1, 9), Destination.parse(tmp_path / "a.safetensors"), RECORD)


def test_unwritable_paths_are_errors(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.pt2").mkdir()
    for path in (tmp_path / "file" / "a.pt2", tmp_path / "folder.pt2"):
        with raises("unwritable", option="--to", path=str(path)):
            export(Steps(), torch.ones(1), Destination.parse(path), RECORD)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder.pt2"}


def test_missing_packages_raise_errors_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with raises("needs-extra", extra="onnx"):
        export(nn.Module(), torch.ones(1), Destination.parse(tmp_path / "a.onnx"), RECORD)
    assert not list(tmp_path.iterdir())


def test_weights_too_large_for_onnx_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_onnx()
    monkeypatch.setattr(formats, "MAX_ONNX_BYTES", 8)
    with raises("unsupported", option="--to", problem="size"):
        export(Steps(), torch.ones(1), Destination.parse(tmp_path / "a.onnx"), RECORD)
