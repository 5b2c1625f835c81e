"""Model cards: metadata that the Hugging Face hub reads, and the row's values in tables."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard

import nas
from command_line import Command
from expect import raises
from nas.exporters.card import card_path, model_card
from nas.exporters.destination import FILES
from nas.exporters.export import ExportReport
from nas.exporters.formats import FORMATS
from results.records.costs import Costs
from results.records.row import Row
from tasks.data.batches import describe
from toy_rows import LITTLE, a_row
from toy_searches import TOYS

SHOWING = f"{TOYS}:Showing"  # its fit returns the network
ROW = a_row(
    architecture=LITTLE.with_fields({"topology": "hyper(streams=2,dynamic=false)"}),
    data="a: b | c",
    recipe={"schedule": "linear | cosine\nor none", "lr": 0.001},
    metrics={"accuracy": 0.51234567, "accuracy_se": 0.0123, "loss": 1.5},
    test={"accuracy": 0.25},
    costs=Costs(params=1234, macs=500, flops=1000),
)


def card_of(row: Row, format: str = ".pt2") -> str:
    """The card of a row whose network was exported in this format."""
    file, inputs = Path(f"net{format}" if format in FILES else "net"), "float32 [batch, 8]"
    report = ExportReport(
        format=format,
        file=file,
        size=9,
        params=1234,
        inputs=inputs,
        input_format=None,
        class_names=("a", "b"),
        axes=("batch",),
        num_inputs=1,
        difference=0.0,
        tolerance=0.0,
    )
    return model_card(row, report)


def cells(card: str) -> dict[str, list[str]]:
    """The first cell of each line of its tables -> the others."""
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in card.splitlines() if line.startswith("|")]
    return {first.strip(): [cell.strip() for cell in others] for first, *others in lines}


def program_of(card: str) -> str:
    """The program that reads the exported file."""
    (program,) = re.findall(r"```python\n(.*?)\n```", card, re.DOTALL)
    return program


def test_card_has_the_type_and_shape_of_inputs() -> None:
    assert "float32 [batch, 8]" in card_of(ROW)
    images = (torch.zeros(1, 3, 8, 8),)
    assert describe(images, ("batch",)) == "float32 [batch, 3, 8, 8]"
    ids = {"input_ids": torch.zeros(1, 16, dtype=torch.long)}
    assert describe(ids, ("batch", "tokens")) == "int64 [batch, tokens]"
    assert describe(images, ()) == "float32 [1, 3, 8, 8]"


def test_metadata_has_the_values_of_the_row() -> None:
    data = ModelCard(card_of(ROW)).data
    assert data.library_name == "pytorch"
    values = {(result.dataset_split, result.metric_type): result.metric_value for result in data.eval_results}
    assert values == {
        ("validation", "accuracy"): 0.51234567,
        ("validation", "loss"): 1.5,
        ("test", "accuracy"): 0.25,
    }
    assert {result.dataset_name for result in data.eval_results} == {"any"}


def test_tables_have_architecture_scores_and_recipe() -> None:
    table = cells(card_of(ROW))
    assert table["topology"] == ["hyper(dynamic=false,streams=2)"]
    assert (table["depth"], table["params"], table["flops"]) == (["1"], ["1,234"], ["1,000"])
    assert "model" not in table  # an empty field
    assert table["accuracy"] == ["0.512±0.012", "0.25"]
    assert table["loss"] == ["1.5", "-"]
    assert (table["recipe: lr"], table["identity"]) == (["0.001"], [ROW.identity()])


def test_values_stay_in_their_cells() -> None:
    table = cells(card_of(ROW))
    assert table["data"] == ["a: b \\| c"]
    assert table["recipe: schedule"] == ["linear \\| cosine or none"]


def test_every_format_has_a_program() -> None:
    for name in FORMATS:
        program = program_of(card_of(ROW, name))
        compile(program, "card", "exec")
        assert (f'"net{name}"' if name in FILES else 'net"') in program


def test_libraries_of_the_hub_know_their_networks() -> None:
    libraries = {name: ModelCard(card_of(ROW, name)).data.library_name for name in FORMATS}
    assert libraries == {
        ".pt2": "pytorch",
        ".onnx": "pytorch",
        ".safetensors": "pytorch",
        "timm:": "timm",
        "transformers:": "transformers",
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Row, dict[str, str]]:
    """A row whose network is saved, and the arguments that find it."""
    storage = f"sqlite:///{tmp_path_factory.mktemp('trained')}/studies.db"
    row = nas.evaluate(SHOWING, preset="smoke", arch="depth=2", study="one", storage=storage)
    return row, {"study": "one", "key": row.architecture.key, "task": SHOWING, "storage": storage}


def test_exported_network_has_a_card_on_request(trained: tuple[Row, dict[str, str]], tmp_path: Path) -> None:
    row, arguments = trained
    file = tmp_path / "net.pt2"
    nas.export(to=file, **arguments)
    assert list(tmp_path.iterdir()) == [file]
    report = nas.export(to=file, card=True, **arguments)
    card = card_path(file).read_text()
    assert card == model_card(row, report)
    names: dict[str, Any] = {"inputs": torch.zeros(3, 8)}
    exec(program_of(card).replace("net.pt2", str(file)), names)
    assert names["scores"].shape == (3, 8)


def test_card_that_cannot_be_written_is_an_error(
    trained: tuple[Row, dict[str, str]], tmp_path: Path, command: Command
) -> None:
    row, arguments = trained
    (tmp_path / "net.md").mkdir()
    words = ("one", row.architecture.key, "--task", SHOWING, "--storage", arguments["storage"])
    with raises("unwritable", path=str(tmp_path / "net.md"), option="--card"):
        nas.export(to=tmp_path / "net.pt2", card=True, **arguments)
    error = command("export", *words, "--to", "net.safetensors", "--card").assert_error("unwritable", option="--card")
    assert error.fields["path"] == "net.md"
    result = command("export", *words, "--to", "other.safetensors", "--card")
    assert result.returncode == 0
    assert Path("other.md").read_text().startswith("---\n")
