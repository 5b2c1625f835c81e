"""The contract of an export: how a network may be called, what is in the files, and what is refused."""

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

from nas import export_formats
from nas.exporting import export, export_folder
from search_spaces.architecture import Architecture
from search_spaces.checkpoint import load_weights, save_checkpoint, weights_of
from search_spaces.errors import UserError
from tasks.digits import DigitsViT
from toy_networks import MIXED, RECORD, TINY, Mixed, Steps, drawn, exported, images, needs_onnx, ran


@pytest.mark.parametrize("named", [True, False], ids=["mapping", "tuple"])
def test_a_network_is_called_with_a_tuple_or_a_mapping(named: bool, ending: str, tmp_path: Path) -> None:
    network = Mixed()
    report = exported(network, MIXED if named else tuple(MIXED.values()), tmp_path / f"a{ending}")
    if ending == ".safetensors":
        return
    assert report.axes == ("batch", "tokens")
    given = torch.randn(2, 5), torch.randint(3, (2, 4)), torch.rand(2, 4) > 0.5
    if ending == ".onnx":
        torch.testing.assert_close(ran(report.file, *given), list(network(*given).values()))


# -- Files


def test_a_kept_network_becomes_weights_with_a_record(tmp_path: Path) -> None:
    task = DigitsViT()
    network = drawn(task.build(TINY))
    save_checkpoint(tmp_path / "kept", weights_of(network), replace(RECORD, task_version=task.version))
    before = torch.get_rng_state()
    report = export_folder(tmp_path / "kept", tmp_path / "new" / "a.safetensors", task)
    assert torch.equal(before, torch.get_rng_state())
    assert "to the bit" in str(report)
    with safe_open(report.file, framework="pt") as file:
        said = file.metadata()
    assert (said["task"], said["step"], json.loads(said["settings"])) == ("digits-vit", "7", {"preset": "smoke"})
    again = DigitsViT().build(Architecture(**json.loads(said["architecture"])))
    load_weights(again, load_file(report.file), "the file")
    x = torch.randn(3, 1, 8, 8)
    assert torch.equal(again(x), network(x))
    assert report.file.stat().st_mode & 0o077 == (tmp_path / "kept" / "architecture.json").stat().st_mode & 0o077


def test_a_kept_network_of_another_task_or_version_is_refused(tmp_path: Path) -> None:
    task = DigitsViT()
    weights = weights_of(task.build(TINY))
    for changes in ({"task": "moons"}, {"task_version": task.version + 1}):
        save_checkpoint(tmp_path / "kept", weights, replace(RECORD, **{"task_version": task.version, **changes}))  # type: ignore[arg-type]
        with pytest.raises(UserError, match=r"holds a network of task '\w"):
            export_folder(tmp_path / "kept", tmp_path / "a.pt2", task)


def test_a_graph_says_what_it_is_and_not_where_it_was_made(tmp_path: Path) -> None:
    needs_onnx()
    import onnx

    network, example = images("resnet")
    exported(network, example, tmp_path / "a.onnx")
    model = onnx.load(tmp_path / "a.onnx")
    said = {each.key: each.value for each in model.metadata_props}
    assert Architecture(**json.loads(said["architecture"])) == TINY
    assert [each.name for each in model.graph.output] == ["output"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert b".py" not in (tmp_path / "a.onnx").read_bytes()
    export(network, example, tmp_path / "a.pt2", RECORD)
    with zipfile.ZipFile(tmp_path / "a.pt2") as parts:
        assert not any(b".py" in parts.read(name) for name in parts.namelist())
        assert any(b"digits-vit" in parts.read(name) for name in parts.namelist())


def test_the_network_is_left_as_it_was(ending: str, tmp_path: Path) -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)).bfloat16().train()
    before = copy.deepcopy(network.state_dict())
    exported(network, torch.zeros(1, 4, dtype=torch.bfloat16), tmp_path / f"a{ending}")
    assert network.training
    assert all(parameter.requires_grad for parameter in network.parameters())
    after = network.state_dict()
    assert all(torch.equal(x, after[name]) and x.dtype == after[name].dtype for name, x in before.items())


class FixedBatch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(1, 2, 2).sum(1)


def test_where_the_batch_cannot_be_free_it_is_the_examples(tmp_path: Path) -> None:
    assert exported(FixedBatch(), torch.zeros(1, 4), tmp_path / "a.pt2").axes == ()


def test_a_network_is_exported_as_its_recipe_made_it(tmp_path: Path) -> None:
    task = DigitsViT()
    settings = {"preset": "smoke", "recipe.batch": 7}
    record = replace(RECORD, task_version=task.version, settings=settings)
    seen: list[Any] = []

    class Noting(DigitsViT):
        def training_form(self, architecture: Architecture, recipe: Any) -> nn.Module:
            seen.append(recipe)
            return self.build(architecture)

    save_checkpoint(tmp_path / "kept", weights_of(task.build(TINY)), record)
    export_folder(tmp_path / "kept", tmp_path / "a.safetensors", Noting())
    assert seen == [replace(DigitsViT.presets["smoke"], batch=7)]


# -- What cannot be


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


@pytest.mark.parametrize(
    ("network", "ending", "reason"),
    [
        (Random(), ".pt2", "its outputs differ by .* of the largest, and 1e-05 is allowed"),
        (Random(), ".safetensors", "and 0 is allowed"),
        (Branch(), ".pt2", "Could not guard on data-dependent expression"),
        (NotANumber(), ".pt2", "not finite"),
        (Untranslatable(), ".onnx", "linalg_eig"),
    ],
)
def test_what_cannot_be_exact_leaves_no_file(network: nn.Module, ending: str, reason: str, tmp_path: Path) -> None:
    if ending == ".onnx":
        needs_onnx()
    path = tmp_path / f"a{ending}"
    path.write_text("what stood there")
    with pytest.raises(UserError, match=reason) as raised:
        export(network, torch.ones(1, 3, 3), path, RECORD)
    assert "\n" not in str(raised.value)
    assert path.read_text() == "what stood there"
    assert list(tmp_path.iterdir()) == [path]


class Shapes(nn.Module):
    """Gives another thing for another number of tokens, which no graph of ONNX can."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4)

    def forward(self, ids: Tensor) -> Tensor:
        words = self.table(ids)
        return words.sum(1) if ids.shape[1] > 3 else words.mean(1)


def test_a_graph_that_is_wrong_for_short_texts_keeps_its_length(tmp_path: Path) -> None:
    needs_onnx()
    report = exported(Shapes(), torch.zeros(1, 8, dtype=torch.long), tmp_path / "a.onnx")
    assert report.axes == ("batch",)


def test_weights_that_do_not_come_back_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(weights: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
        save_file({name: x * (1 + 2e-7) for name, x in weights.items()}, path, metadata)

    monkeypatch.setattr(export_formats, "save_file", careless)
    with pytest.raises(UserError, match="and 0 is allowed"):
        export(nn.Linear(9, 9), torch.ones(1, 9), tmp_path / "a.safetensors", RECORD)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\.safetensors, \.pt2, \.onnx, got 'a\.pth'"):
        export(Steps(), torch.ones(1), tmp_path / "a.pth", RECORD)


def test_a_place_that_cannot_be_written_to_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.pt2").mkdir()
    for path in (tmp_path / "file" / "a.pt2", tmp_path / "folder.pt2"):
        with pytest.raises(UserError, match="cannot be written"):
            export(Steps(), torch.ones(1), path, RECORD)
    assert {each.name for each in tmp_path.iterdir()} == {"file", "folder.pt2"}


def test_missing_packages_are_named_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"pip install \"\.\[onnx\]\""):
        export(nn.Module(), torch.ones(1), tmp_path / "a.onnx", RECORD)
    assert not list(tmp_path.iterdir())


def test_weights_beyond_one_file_of_onnx_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_onnx()
    monkeypatch.setattr(export_formats, "ONE_PIECE", 8)
    with pytest.raises(UserError, match="2 GiB at most"):
        export(Steps(), torch.ones(1), tmp_path / "a.onnx", RECORD)
