"""`nas show`: tables and pictures of a network's topology, before and after training."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import nas
from command_line import Command
from expect import raises
from grouped import grouped
from search_spaces.architecture.checkpoint import read_record
from search_spaces.support.errors import Kind
from toy_searches import TOY

pytestmark = pytest.mark.usefixtures("in_tmp_path")
NETWORK = "depth=2,width=16,heads=2,head_dim=8,hidden=16"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with learned weights on its shortcuts, after a short training."""
    folder = tmp_path_factory.mktemp("trained") / "grn"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.parent)
        settings = "lr=0.02,epochs=1"
        nas.evaluate("digits-vit", arch=NETWORK, topology="grn-v1", preset="smoke", settings=settings, save=folder)
    return folder


def output_of(command: Command, *words: str) -> str:
    result = command("show", *words)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_command_prints_tables(command: Command) -> None:
    title, *lines = output_of(command, "digits-vit", "--arch", NETWORK, "--topology", "ancre").splitlines()
    assert all(re.search(rf"\b{word}\b", title) for word in ("topology=ancre", "digits-vit", "proxy", "0"))
    assert [line.split() for line in lines if line.startswith("head")] == [["head", "3.5", "1.5", "1.5", "1", "1"]]
    assert any("gradient" in line.split() for line in lines)
    heading = next(i for i, line in enumerate(lines) if line.startswith("p, "))  # the topology's own weights
    assert [line.split() for line in lines[heading + 1 :] if "─" not in line] == [
        ["row", "1", "2"],
        ["1", "1", "-"],
        ["2", "0.5", "0.5"],
    ]


def test_narrow_terminal_drops_columns_and_no_digits(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.report.tables.make_console", lambda **_: Console(width=80))
    out = output_of(command, "digits-vit", "--preset", "smoke", "--arch", "depth=12", "--topology", "ancre")
    assert max(map(len, (line for line in out.splitlines() if line.startswith("12 ")))) <= 80
    assert "…" not in out
    assert ", 23, 24" in out


def test_command_draws_a_picture(command: Command) -> None:
    words = ("digits-vit", "--arch", NETWORK, "--topology", "dca(k=2)", "--preset", "smoke", "-o", "wiring.png")
    assert "wiring.png" in output_of(command, *words)
    assert Path("wiring.png").stat().st_size > 20_000


def test_command_prints_numbers_as_json(command: Command) -> None:
    records = json.loads(output_of(command, "digits-vit", "--arch", NETWORK, "--preset", "smoke", "--format", "json"))
    assert [records[0][name] for name in ("layer", "reader", "source", "of", "weight")] == [
        1, "1 attention", 0, "embedding", pytest.approx(1),
    ]  # fmt: skip


def test_report_of_a_checkpoint_has_its_weights(checkpoint: Path) -> None:
    weights = nas.show("digits-vit", checkpoint=checkpoint).to_pandas()
    assert 0.01 < (weights["weight"] - 1).abs().max() < 2
    again = nas.show("digits-vit", checkpoint=checkpoint, topology="grn-v1", arch="depth=2")
    assert again.to_pandas().equals(weights)
    assert "smoke" in again.title
    assert str(read_record(checkpoint).step) in again.title
    start = nas.show("digits-vit", arch=NETWORK, topology="grn-v1", preset="smoke").to_pandas()
    assert (start["weight"] - 1).abs().max() < 1e-9
    same = nas.show("digits-vit", arch=NETWORK, topology="grn-v1", preset="smoke").to_pandas()
    assert same.equals(start)
    other = nas.show("digits-vit", arch=NETWORK, topology="grn-v1", preset="smoke", seed=1).to_pandas()
    assert not other["made"].equals(start["made"])


def test_report_has_every_stack_also_without_a_loss() -> None:
    pytest.importorskip("gymnasium_robotics")
    network = nas.show("goal-point-maze", preset="smoke", topology="denseformer", arch="depth=2")
    assert [stack.name for stack in network.stacks] == ["actor.stack", "phi.stack", "psi.stack"]
    data = network.to_pandas()
    assert "gradient" not in data or data["gradient"].isna().all()
    assert set(data["stack"]) == {"actor.stack", "phi.stack", "psi.stack"}
    assert (data["made"] > 0).all()
    assert len(network.plot().axes) >= 3


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"topology": "resnext"}, "unknown-name", {"option": "topology", "value": "resnext", "nearest": "resnet"}),
    ({"preset": "fast"}, "unknown-name", {"option": "preset", "value": "fast"}),
    ({"seed": -1}, "out-of-range", {"option": "--seed", "value": -1, "least": 0}),
    ({"checkpoint": "nowhere"}, "missing-file", {"path": "nowhere/architecture.json"}),
    ({"task": TOY}, "unsupported", {"task": "toy"}),
]


def test_impossible_requests_are_errors(command: Command) -> None:
    with grouped() as case:
        for arguments, kind, fields in MISTAKES:
            with case(str(arguments)), raises(kind, **fields):
                nas.show(**{"task": "digits-vit", **arguments})
    command("show", "digits-vit", "-o", "wiring.jpg").assert_error("unsupported", path="wiring.jpg")


def test_network_other_than_that_of_the_checkpoint_is_an_error(checkpoint: Path) -> None:
    with raises("mismatch", path=str(checkpoint)) as error:
        nas.show("digits-vit", checkpoint=checkpoint, arch="depth=3")
    assert "depth=2" in error.value.fields["architecture"]
    assert "depth=3" in error.value.fields["value"]
    with raises("mismatch", path=str(checkpoint)) as error:
        nas.show("digits-vit", checkpoint=checkpoint, topology="resnet")
    assert "topology=resnet" in error.value.fields["value"]
    with raises("mismatch", path=str(checkpoint), task="digits-vit", choices=("digit-ranks-vit",)):
        nas.show("digit-ranks-vit", checkpoint=checkpoint)
