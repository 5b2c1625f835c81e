"""Which networks of a study are measured for its report, with what numbers, and what is said of the others."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import nas
import nas.jobs
from nas.cli import app
from nas.reporting import wirings
from nas.reporting.page import page_of
from nas.reporting.wirings import Wirings, wirings_of
from nas.storage.store import Store
from nas.study import Study
from results import lines
from results.standing import Standing
from search_spaces.checkpoint import RECORD, WEIGHTS
from search_spaces.errors import Notice
from toy_searches import TOYS

OBJECTIVES: dict[str, Any] = {"accuracy": "max", "flops": "min"}


def on_the_front(study: Study) -> list[Standing]:
    """Its architectures, all of them surely on the front."""
    return [replace(one, chance=1.0, stands=True) for one in study.standings()]


def found_in(study: Study) -> Wirings:
    return wirings_of(study, on_the_front(study), OBJECTIVES)


def network_of(study: Study, topology: str) -> Path:
    (row,) = (row for row in study.rows() if row.architecture.topology == topology)
    return Store(study.storage).network(row.identity())


@pytest.fixture
def copied(wired: Study, tmp_path: Path) -> Study:
    """The study in a store of its own, which may be broken."""
    shutil.copytree(Path(wired.storage.removeprefix("sqlite:///")).parent, tmp_path / "copied")
    return nas.load("wired", storage=f"sqlite:///{tmp_path}/copied/studies.db")


def test_the_numbers_are_those_of_nas_show(wired: Study) -> None:
    found = found_in(wired)
    assert not found.notes
    assert [one.topology for one in found.shown] == [one.record["topology"] for one in on_the_front(wired)]
    for one in found.shown:
        shown = nas.show("digits-vit", checkpoint=network_of(wired, one.topology))
        assert one.says == shown.title
        assert one.title == f"{one.topology} {shown_key(wired, one.topology)}, seed 0"
        assert [(pair["reads"], pair["of"]) for pair in one.pairs] == [(r["reader"], r["of"]) for r in shown.records]
        for name in ("weight", "gain", "share"):
            known = [None if r[name] is None else pytest.approx(r[name], rel=1e-3) for r in shown.records]
            assert [pair[name] for pair in one.pairs] == known
        (stack,) = shown.stacks
        assert [stack.readers[pair["reader"]] for pair in one.pairs] == [pair["reads"] for pair in one.pairs]
        assert [depth["layer"] for depth in one.depths] == [*stack.sources, "head"]
        assert [depth["read"] for depth in one.depths[1:]] == pytest.approx(list(stack.influence.read_by_layer), 1e-3)
        assert [depth["made"] for depth in one.depths[:-1]] == pytest.approx(list(stack.influence.made), 1e-3)
        assert stack.influence.gradient is not None
        assert [depth["gradient"] for depth in one.depths[:-1]] == pytest.approx(list(stack.influence.gradient), 1e-3)


def test_a_topologys_own_weights_are_records_of_those_that_there_are() -> None:
    records = wirings._coefficients(np.array([[1.0, np.nan], [0.123456, -2.0]]))
    assert records == [
        {"row": 1, "column": "1", "weight": 1.0},
        {"row": 2, "column": "1", "weight": 0.1235},
        {"row": 2, "column": "2", "weight": -2.0},
    ]


def test_a_topologys_own_weights_reach_the_page(wired: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = found_in(wired).shown
    for weights, charts in (({}, 0), ({"A_m": [{"row": 1, "column": "1", "weight": 1.0}]}, 1)):
        one = replace(first, coefficients=weights)
        monkeypatch.setattr(wirings, "wirings_of", lambda *_, one=one: Wirings((one,), ()))
        assert page_of(wired, OBJECTIVES, wirings=True).count('id="weights-0-') == charts


def shown_key(study: Study, topology: str) -> str:
    return next(row.architecture.key[:6] for row in study.rows() if row.architecture.topology == topology)


def test_the_data_is_read_once(wired: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh, asked = nas.jobs.fresh_task, list[Any]()

    def noting(*of: Any) -> Any:
        asked.append(of)
        return fresh(*of)

    monkeypatch.setattr(nas.jobs, "fresh_task", noting)
    assert len(found_in(wired).shown) == 3
    assert asked == [("digits-vit", None)]


def test_the_best_are_shown_and_the_others_named(wired: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wirings, "MOST_SHOWN", 1)
    found = on_the_front(wired)
    for best in range(3):
        chances = [replace(one, chance=0.9 if i == best else 0.8) for i, one in enumerate(found)]
        measured = wirings_of(wired, chances, OBJECTIVES)
        assert [one.topology for one in measured.shown] == [found[best].record["topology"]]
        (note,) = measured.notes
        assert "left out, the 1 that" in note
        assert all((str(one.record["topology"]) in note) is (i != best) for i, one in enumerate(found))


@pytest.mark.parametrize(("way", "best"), [("max", 2), ("min", 1)])
def test_where_nobody_knows_the_chance_it_is_the_metric(
    wired: Study, monkeypatch: pytest.MonkeyPatch, way: str, best: int
) -> None:
    monkeypatch.setattr(wirings, "MOST_SHOWN", 1)
    unknown = [
        replace(one, chance=float("nan"), expected={"accuracy": accuracy, "flops": 1})
        for one, accuracy in zip(on_the_front(wired), (0.5, 0.4, 0.6), strict=True)
    ]
    objectives: dict[str, Any] = {"accuracy": way, "flops": "min"}
    assert wirings_of(wired, unknown, objectives).shown[0].topology == unknown[best].record["topology"]


def test_what_is_not_on_the_front_is_not_looked_at(wired: Study) -> None:
    first, *others = on_the_front(wired)
    behind = [replace(one, chance=0.01, stands=False) for one in others]
    measured = wirings_of(wired, [first, *behind], OBJECTIVES)
    assert (len(measured.shown), measured.notes) == (1, ())


def test_what_was_not_kept_or_is_damaged_is_named(copied: Study) -> None:
    shutil.rmtree(network_of(copied, "resnet"))
    (network_of(copied, "dca(k=2)") / WEIGHTS).write_bytes(b"no weights")
    found = found_in(copied)
    assert [one.topology for one in found.shown] == ["rmt(keys=4)"]
    damaged, lost = found.notes
    assert damaged.startswith(f"dca(k=2) {shown_key(copied, 'dca(k=2)')}: ")
    assert "cannot be read" in damaged
    assert lost.startswith(f"resnet {shown_key(copied, 'resnet')}: no network is kept")


def test_what_a_checkpoint_says_of_itself_runs_no_code(copied: Study, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    record = network_of(copied, "resnet") / RECORD
    record.write_text(record.read_text().replace("digits-vit", f"{tmp_path}/evil.py:Evil"))
    found = found_in(copied)
    assert len(found.shown) == 2
    assert "is not installed" in found.notes[0]
    assert not (tmp_path / "ran").exists()


def test_a_task_in_a_file_is_named_with_who_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = f"sqlite:///{tmp_path}/toys.db"
    for topology in ("resnet", "grn-v1"):
        nas.evaluate(f"{TOYS}:Showing", preset="smoke", topology=topology, study="toys", storage=storage)
    study = nas.load("toys", storage=storage)
    both = r"shows no wirings. \S+ \w{6}, \S+ \w{6}: a report runs no file of code; `nas show FILE"
    with pytest.warns(Notice, match=both):
        study.report("toys.html", wirings=True)
    page = Path("toys.html").read_text()
    assert page.count("runs no file of code") == 1
    assert f"{network_of(study, 'resnet').parent}/..." in page


def test_rows_of_files_have_no_networks_and_a_report(
    wired: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines.write(wired.rows(), tmp_path / "rows.jsonl")
    with pytest.warns(Notice, match="the report shows no wirings.*rows of files have no networks"):
        done = CliRunner().invoke(app, ["report", "--from", "rows.jsonl", "-o", "rows.html", "--wirings"])
    assert done.exit_code == 0, done.output
    page = Path("rows.html").read_text()
    assert "<h2>Wirings</h2>" in page
    assert "rows of files have no networks" in page
    assert 'id="wiring-0"' not in page


def test_either_door_writes_the_same_and_without_the_option_torch_is_not_loaded(wired: Study, tmp_path: Path) -> None:
    words = ["report", "wired", "--storage", wired.storage, "-o"]
    done = CliRunner().invoke(app, [*words, str(tmp_path / "typed.html"), "--wirings"])
    assert done.exit_code == 0, done.output
    wired.report(tmp_path / "called.html", wirings=True)
    assert (tmp_path / "typed.html").read_text() == (tmp_path / "called.html").read_text()
    program = (
        "import sys; from nas.cli import main\ntry: main()\nexcept SystemExit: pass\n"
        "sys.exit('torch' in sys.modules or 'nas.reporting.wirings' in sys.modules)"
    )
    plain = tmp_path / "plain.html"
    subprocess.run([sys.executable, "-c", program, *words, str(plain)], check=True, capture_output=True)
    assert "Wirings" not in plain.read_text()
