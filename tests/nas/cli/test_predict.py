"""From a study to a network in other programs: load_network, export and predict."""

import json
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import nas
from command_line import Command
from expect import raises
from nas.evaluation.trained_network import TrainedNetwork
from nas.exporters.programs import program_of
from tasks.input_formats import from_json
from tasks.vision.digits import DigitsViT
from toy_networks import needs_onnx

ALONE = """
import sys, torch, numpy
from PIL import Image
network = torch.export.load(sys.argv[1]).module()
images = torch.stack([torch.from_numpy(numpy.array(Image.open(file)))[None] for file in sys.argv[2:]])
assert "nas" not in sys.modules and "tasks" not in sys.modules
print(*network(images).argmax(dim=1).tolist())
"""


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a search of digits-vit."""
    url = f"sqlite:///{tmp_path_factory.mktemp('predict')}/studies.db"
    axes = ["depth=1,2", "heads=4", "head_dim=8", "topology=resnet"]
    study = nas.search(
        "digits-vit",
        preset="smoke",
        settings="epochs=3",
        arch="depth=2",
        axis=axes,
        trials=2,
        reeval_fraction=0,
        study="small",
        storage=url,
    )
    assert len(study) == 2
    return url


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Ten scans of the test split as files."""
    folder = tmp_path_factory.mktemp("scans")
    images, _ = DigitsViT().load().test
    files = [folder / f"{number}.png" for number in range(10)]
    for file, image in zip(files, images, strict=False):
        Image.fromarray((image[0] * 255).round().to(torch.uint8).numpy()).save(file)
    return files


def expected_digits(network: TrainedNetwork, files: list[Path]) -> list[str]:
    images = torch.stack([torch.from_numpy(np.array(Image.open(file)))[None] for file in files])
    return [network.class_names[i] for i in network(images).argmax(dim=1)]


def test_network_of_a_study_classifies_as_it_was_tested(storage: str) -> None:
    study = nas.load("small", storage=storage)
    row = max(study.rows(), key=lambda row: row.metrics["accuracy"])
    network = nas.load_network("small", row.architecture.key, storage=storage)
    images, labels = DigitsViT().load().test
    right = network((images * 255).round().to(torch.uint8)).argmax(dim=1) == labels
    assert abs(right.double().mean().item() - row.test["accuracy"]) < 0.01


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_the_printed_program_classifies_a_file_of_any_size(
    suffix: str, storage: str, scans: list[Path], tmp_path: Path
) -> None:
    if suffix == ".onnx":
        needs_onnx()
    report = nas.export("small", to=tmp_path / f"network{suffix}", storage=storage)
    large = tmp_path / "large.png"
    Image.open(scans[3]).resize((80, 60), Image.Resampling.BICUBIC).save(large)
    text = program_of(report, report.file).replace('"IMAGE"', repr(str(large)))
    words = [sys.executable, "-I", "-W", "ignore", "-c", text]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert literal_eval(done.stdout) == [nas.predict(report.file, large).records[0]["class"]]


def test_scans_of_a_grid_have_a_class_each(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    folder, image = tmp_path / "network", tmp_path / "grid.png"
    nas.evaluate("digit-ranks-vit", preset="smoke", save=folder, storage=storage)
    Image.new("L", (16, 16), 100).save(image)
    (record,) = nas.predict(folder, image).records
    assert [int(rank) in range(4) for rank in record["classes"].split()] == [True] * 4


def test_default_is_the_knee_of_the_newest_search(storage: str) -> None:
    front = nas.load("small", storage=storage).front()
    network = nas.load_network(storage=storage)
    keys = {one.record["key"]: one.record["depth"] for one in front}
    assert len(network.network.get_submodule("stack.layers")) // 2 in keys.values()


def test_exported_graph_classifies_files_without_this_package(
    storage: str, scans: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = nas.export(storage=storage)
    assert report.row is not None
    assert report.file == Path(f"digits-vit-{report.row.architecture.key}.pt2")
    network = nas.load_network("small", report.row.identity(), storage=storage)
    digits = expected_digits(network, scans)
    run = subprocess.run(
        [sys.executable, "-c", ALONE, report.file, *scans], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert run.stdout.split() == digits
    predictions = nas.predict(report.file, scans)
    assert [record["class"] for record in predictions.records] == digits
    assert [record["file"] for record in predictions.records] == [str(file) for file in scans]
    assert all(0.1 < record["probability"] <= 1 for record in predictions.records)
    raw = nas.export(to="raw.pt2", raw=True, storage=storage)
    images = torch.stack([torch.from_numpy(np.array(Image.open(file)))[None] for file in scans])
    scores = torch.export.load(raw.file).module()(DigitsViT().preprocess(images))
    torch.testing.assert_close(scores, network(images), atol=1e-4, rtol=1e-4)
    with raises("unsupported", option="NETWORK"):
        nas.predict(raw.file, scans)


def test_metadata_say_what_the_graph_takes(storage: str, tmp_path: Path) -> None:
    report = nas.export("small", to=tmp_path / "a.pt2", storage=storage)
    metadata = {"inputs": "", "classes": ""}
    torch.export.load(report.file, extra_files=metadata)
    assert from_json(metadata["inputs"]) == DigitsViT().input_format()
    assert json.loads(metadata["classes"]) == list("0123456789")


def test_command_prints_how_to_use_the_file(storage: str, scans: list[Path], command: Command, tmp_path: Path) -> None:
    result = command("export", "--storage", storage, "--to", "a.pt2")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    names = [line.partition(":")[0] for line in lines]
    assert [name for name in names if name in ("a.pt2", "network", "inputs", "outputs", "program", "or")] == [
        "a.pt2", "network", "inputs", "outputs", "program", "or",
    ]  # fmt: skip
    assert 'network = torch.export.load("a.pt2", extra_files=files).module()' in lines
    result = command("predict", "a.pt2", *map(str, scans), "--format", "json")
    records = json.loads(result.stdout)
    assert [set(record) for record in records] == [{"file", "class", "probability"}] * 10


def test_onnx_predicts_as_the_network(storage: str, scans: list[Path], tmp_path: Path) -> None:
    needs_onnx()
    report = nas.export("small", to=tmp_path / "a.onnx", storage=storage)
    network = nas.load_network("small", storage=storage)
    assert [record["class"] for record in nas.predict(report.file, scans).records] == expected_digits(network, scans)


def test_folder_of_a_network_predicts_as_its_export(scans: list[Path], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    nas.evaluate("digits-vit", preset="smoke", settings="epochs=1", save=tmp_path / "network", storage=url)
    records = nas.predict(tmp_path / "network", scans).records
    assert [record["class"] for record in records] == expected_digits(nas.load_network(tmp_path / "network"), scans)


def test_other_files_are_refused(tmp_path: Path, scans: list[Path]) -> None:
    with raises("unsupported", option="NETWORK"):
        nas.predict(scans[0], scans)
    (tmp_path / "a.pt2").write_text("no network")
    with raises("bad-file", path=str(tmp_path / "a.pt2")):
        nas.predict(tmp_path / "a.pt2", scans)
    (tmp_path / "empty").mkdir()
    with raises("missing-file", path=str(tmp_path / "none.pt2")):
        nas.predict(tmp_path / "none.pt2", scans)
    with raises("missing-file", path=str(tmp_path / "empty")):
        nas.load_network(tmp_path / "empty")
    with raises("out-of-range", option="--tokens"):
        nas.predict(tmp_path / "a.pt2", scans, tokens=0)


def test_lines_of_tables_are_classified(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    settings = "examples=300,held_out=100,epochs=2"
    nas.evaluate("mnist1d-vit", preset="smoke", settings=settings, save=tmp_path / "network", storage=url)
    lines = np.random.default_rng(0).normal(size=(70, 40)).round(3)
    np.savetxt(tmp_path / "a.csv", lines, delimiter=",")
    records = nas.predict(tmp_path / "network", tmp_path / "a.csv").records
    scores = nas.load_network(tmp_path / "network")(torch.tensor(lines, dtype=torch.float32))
    assert [record["class"] for record in records] == [str(i) for i in scores.argmax(dim=1).tolist()]
    assert [record["line"] for record in records] == [*range(1, 71)]
    (tmp_path / "b.csv").write_text("1,2\n")
    with raises("bad-data", line=1, expected=40):
        nas.predict(tmp_path / "network", tmp_path / "b.csv")


def test_texts_are_continued_by_the_most_probable_tokens(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    settings = "steps=3,batch=2,measured=4,reports=1"
    arch = "depth=1,width=32,heads=2,hidden=32"
    nas.evaluate("stdlib-lm", preset="smoke", settings=settings, arch=arch, save=tmp_path / "network", storage=url)
    (tmp_path / "a.txt").write_text("def main(")
    (record,) = nas.predict(tmp_path / "network", tmp_path / "a.txt", tokens=3).records
    from tasks.load import load_task

    tokenizer, network = load_task("stdlib-lm").cached_text[1], nas.load_network(tmp_path / "network")  # type: ignore[attr-defined]
    ids = tokenizer.encode(["def main("])[0].tolist()
    for _ in range(3):
        ids.append(int(network(torch.tensor([ids]))[0, -1].argmax()))
    assert record == {"file": str(tmp_path / "a.txt"), "continuation": tokenizer.decode(ids[-3:])}
