"""`nas show`: a network's wiring as tables and pictures, before and after training."""

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

import nas
from nas.cli import main
from search_spaces.errors import UserError

NETWORK = "depth=2,width=16,heads=2,head_dim=8,hidden=16"
TOY = f"{Path(__file__).parent / 'toy_tasks.py'}:Toy"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with learnt weights on its shortcuts, trained briefly."""
    folder = tmp_path_factory.mktemp("trained") / "grn"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.parent)
        nas.evaluate("digits-vit", arch=NETWORK, topology="grn-v1", preset="smoke", settings="lr=0.02", save=folder)
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["nas", "show", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0), *capsys.readouterr()


def test_tables_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(monkeypatch, capsys, "digits-vit", "--arch", NETWORK, "--topology", "ancre")
    assert status == 0
    assert "topology=ancre on digits-vit at proxy, as drawn with seed 0" in out
    assert "weight of each source" in out
    assert [line.split() for line in out.splitlines() if line.startswith("head")] == [
        ["head", "3.5", "1.5", "1.5", "1", "1"]
    ]
    assert "gradient" in out
    own = out.partition("p, of the topology's own weights")[2].splitlines()
    assert [line.split() for line in own[1:] if "─" not in line] == [
        ["row", "1", "2"],
        ["1", "1", "-"],
        ["2", "0.5", "0.5"],
    ]


def test_columns_are_dropped_and_no_digits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("nas.report.screen", lambda **_: Console(width=80))
    status, out, _ = run(
        monkeypatch, capsys, "digits-vit", "--preset", "smoke", "--arch", "depth=12", "--topology", "ancre"
    )
    assert status == 0
    assert max(map(len, (line for line in out.splitlines() if line.startswith("12 ")))) <= 80
    assert "…" not in out
    assert "no room for: " in out
    assert ", 23, 24" in out


def test_the_picture_is_drawn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("digits-vit", "--arch", NETWORK, "--topology", "dca(k=2)", "--preset", "smoke", "-o", "wiring.png")
    status, out, _ = run(monkeypatch, capsys, *words)
    assert status == 0
    assert "drawn in wiring.png" in out
    assert Path("wiring.png").stat().st_size > 20_000


def test_numbers_for_other_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("digits-vit", "--arch", NETWORK, "--preset", "smoke", "--format", "json")
    status, out, _ = run(monkeypatch, capsys, *words)
    assert status == 0
    records = json.loads(out)
    assert [records[0][name] for name in ("layer", "reader", "source", "of", "weight")] == [
        1, "1 attention", 0, "embedding", pytest.approx(1),
    ]  # fmt: skip


def test_a_trained_network_is_read_with_what_it_learnt(trained: Path) -> None:
    learnt = nas.show("digits-vit", checkpoint=trained).to_pandas()
    assert 0.01 < (learnt["weight"] - 1).abs().max() < 2
    again = nas.show("digits-vit", checkpoint=trained, topology="grn-v1", arch="depth=2")
    assert again.to_pandas().equals(learnt)
    assert "at smoke, after " in again.title
    start = nas.show("digits-vit", arch=NETWORK, topology="grn-v1", preset="smoke").to_pandas()
    assert (start["weight"] - 1).abs().max() < 1e-9
    same = nas.show("digits-vit", arch=NETWORK, topology="grn-v1", preset="smoke").to_pandas()
    assert same.equals(start)
    other = nas.show("digits-vit", arch=NETWORK, topology="grn-v1", preset="smoke", seed=1).to_pandas()
    assert not other["made"].equals(start["made"])


def test_every_stack_of_a_network_is_shown_though_there_is_no_loss() -> None:
    pytest.importorskip("gymnasium_robotics")
    found = nas.show("goal-point-maze", preset="smoke", topology="denseformer")
    assert [stack.name for stack in found.stacks] == ["actor.stack", "phi.stack", "psi.stack"]
    data = found.to_pandas()
    assert "gradient" not in data or data["gradient"].isna().all()
    assert set(data["stack"]) == {"actor.stack", "phi.stack", "psi.stack"}
    assert (data["made"] > 0).all()
    found.plot("agent.svg")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["digits-vit", "--topology", "resnext"], "unknown topology 'resnext'. Did you mean 'resnet'?"),
        (["digits-vit", "--preset", "fast"], "unknown preset"),
        (["digits-vit", "--seed", "-1"], "--seed must be a whole number of at least 0"),
        (["digits-vit", "-o", "wiring.jpg"], "a picture must end in .png, .pdf, .svg, got 'wiring.jpg'."),
        (["digits-vit", "--checkpoint", "nowhere"], "nowhere has no architecture.json"),
        ([TOY], "the network of 'toy' has none"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = run(monkeypatch, capsys, *words)
    assert status == 2
    assert said in error
    assert error.count("\n") == 1


def test_another_network_than_the_checkpoints(trained: Path) -> None:
    with pytest.raises(UserError, match=r"holds depth=2.*grn-v1, got depth=3.*Leave out --arch and --topology"):
        nas.show("digits-vit", checkpoint=trained, arch="depth=3")
    with pytest.raises(UserError, match="topology=resnet"):
        nas.show("digits-vit", checkpoint=trained, topology="resnet")
    with pytest.raises(UserError, match=r"is of task 'digits-vit' version \d+, this takes 'digit-ranks-vit'"):
        nas.show("digit-ranks-vit", checkpoint=trained)
