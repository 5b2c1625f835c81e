"""Which networks of a study are measured for its report, with what numbers, and which are left out."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import nas
import nas.request.job
from expect import raises, warns
from nas.cli.main import app
from nas.evaluation.retrofit import origin_of
from nas.report.html import wirings
from nas.report.html.contents import ReportContents
from nas.report.html.page import render_page
from nas.report.html.wirings import Wirings, wirings_of
from nas.report.study import Study
from nas.report.wiring.stack_wiring import coefficient_records
from nas.store.store import Store
from results.records import jsonl
from results.stats.architecture_summary import ArchitectureSummary
from search_spaces.architecture.checkpoint import RECORD, WEIGHTS
from toy_searches import TOYS

OBJECTIVES: dict[str, Any] = {"accuracy": "max", "flops": "min"}


def on_the_front(study: Study) -> list[ArchitectureSummary]:
    """Its architectures, all of them surely on the front."""
    return [replace(one, p_front=1.0, on_front=True) for one in study.summaries()]


def found_in(study: Study) -> Wirings:
    return wirings_of(study.storage, study.rows(), on_the_front(study), OBJECTIVES)


def network_of(study: Study, topology: str) -> Path:
    (row,) = (row for row in study.rows() if row.architecture.topology == topology)
    return Store(study.storage).network(row.identity())


@pytest.fixture(scope="module")
def measured(network_study: Study) -> Wirings:
    return found_in(network_study)


@pytest.fixture
def copied(network_study: Study, tmp_path: Path) -> Study:
    """The study in a store of its own, which may be broken."""
    shutil.copytree(Path(network_study.storage.removeprefix("sqlite:///")).parent, tmp_path / "copied")
    return nas.load("wired", storage=f"sqlite:///{tmp_path}/copied/studies.db")


def test_numbers_are_those_of_nas_show(network_study: Study, measured: Wirings) -> None:
    assert not measured.notes
    assert [one.topology for one in measured.networks] == [
        one.record["topology"] for one in on_the_front(network_study)
    ]
    for one in measured.networks:
        shown = nas.show("digits-vit", checkpoint=network_of(network_study, one.topology))
        assert one.description.startswith(shown.title)
        assert one.title == f"{one.topology} {shown_key(network_study, one.topology)}, seed 0"
        assert [(pair["reads"], pair["of"]) for pair in one.pairs] == [(r["reader"], r["of"]) for r in shown.records]
        for name in ("weight", "gain", "share"):
            known = [None if r[name] is None else pytest.approx(r[name], rel=1e-3) for r in shown.records]
            assert [pair[name] for pair in one.pairs] == known
        (stack,) = shown.stacks
        assert [stack.readers[pair["reader"]] for pair in one.pairs] == [pair["reads"] for pair in one.pairs]
        assert [depth["layer"] for depth in one.depths] == [*stack.sources, "head"]
        assert [depth["read"] for depth in one.depths[1:]] == pytest.approx(list(stack.influence.layer_input_rms), 1e-3)
        assert [depth["made"] for depth in one.depths[:-1]] == pytest.approx(list(stack.influence.output_rms), 1e-3)
        assert stack.influence.gradient is not None
        assert [depth["gradient"] for depth in one.depths[:-1]] == pytest.approx(list(stack.influence.gradient), 1e-3)
        assert one.coefficients.keys() == stack.coefficients.keys()
        for name, known in stack.coefficients.items():
            there = {
                (record["row"], column): pytest.approx(weight, rel=1e-3)
                for record in coefficient_records(known)
                for column, weight in record.items()
                if column != "row" and weight is not None
            }
            records = one.coefficients[name]
            assert {(record["row"], record["column"]): record["weight"] for record in records} == there
            assert len(records) == len(there)
            assert max(len(f"{record['weight']:.9f}".strip("-0.")) for record in records) <= 4  # digits
    weights = {one.topology: [*one.coefficients] for one in measured.networks if one.coefficients}
    assert weights == {"ancre": ["p"]}  # of which block 1 has no second one


def shown_key(study: Study, topology: str) -> str:
    return next(row.architecture.key[:6] for row in study.rows() if row.architecture.topology == topology)


def test_data_is_read_once(network_study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh, asked = nas.request.job.reload_task, list[Any]()

    def noting(*of: Any) -> Any:
        asked.append(of)
        return fresh(*of)

    monkeypatch.setattr(wirings, "reload_task", noting)
    assert len(found_in(network_study).networks) == 3
    assert asked == [("digits-vit", None)]


def test_likeliest_are_shown_and_the_others_named(network_study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wirings, "MAX_NETWORKS", 1)
    found = on_the_front(network_study)
    for best in range(3):
        chances = [replace(one, p_front=0.9 if i == best else 0.8) for i, one in enumerate(found)]
        measured = wirings_of(network_study.storage, network_study.rows(), chances, OBJECTIVES)
        assert [one.topology for one in measured.networks] == [found[best].record["topology"]]
        (note,) = measured.notes
        assert " 1 " in note
        assert all((str(one.record["topology"]) in note) is (i != best) for i, one in enumerate(found))


def test_best_by_metric_are_shown_if_chances_are_unknown(network_study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wirings, "MAX_NETWORKS", 1)
    unknown = [
        replace(one, p_front=float("nan"), expected={"accuracy": accuracy, "flops": 1})
        for one, accuracy in zip(on_the_front(network_study), (0.5, 0.4, 0.6), strict=True)
    ]
    for way, best in (("max", 2), ("min", 1)):
        objectives: dict[str, Any] = {"accuracy": way, "flops": "min"}
        measured = wirings_of(network_study.storage, network_study.rows(), unknown, objectives)
        assert measured.networks[0].topology == unknown[best].record["topology"]


def test_networks_behind_the_front_are_not_measured(network_study: Study) -> None:
    first, *others = on_the_front(network_study)
    behind = [replace(one, p_front=0.01, on_front=False) for one in others]
    measured = wirings_of(network_study.storage, network_study.rows(), [first, *behind], OBJECTIVES)
    assert (len(measured.networks), measured.notes) == (1, ())


def test_lost_and_damaged_networks_are_named(copied: Study) -> None:
    shutil.rmtree(network_of(copied, "ancre"))
    (network_of(copied, "dca(k=2)") / WEIGHTS).write_bytes(b"no weights")
    found = found_in(copied)
    assert [one.topology for one in found.networks] == ["rmt(keys=4)"]
    damaged, lost = found.notes
    with raises("bad-file", path=str(network_of(copied, "dca(k=2)") / WEIGHTS)) as refused:
        nas.show("digits-vit", checkpoint=network_of(copied, "dca(k=2)"))
    assert damaged == f"dca(k=2) {shown_key(copied, 'dca(k=2)')}: {refused.value}"
    assert [(error.kind, error.fields) for error in found.errors] == [("bad-file", refused.value.fields)]
    assert lost.startswith(f"ancre {shown_key(copied, 'ancre')}: ")
    assert "`nas search --save-models all`" in lost


def test_record_of_a_checkpoint_runs_no_code(copied: Study, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    record = network_of(copied, "ancre") / RECORD
    record.write_text(record.read_text().replace("digits-vit", f"{tmp_path}/evil.py:Evil"))
    found = found_in(copied)
    assert len(found.networks) == 2
    with raises("missing-value", option="--task", task=f"{tmp_path}/evil.py:Evil") as refused:
        origin_of(record.parent, load=nas.request.job.reload_task)
    assert found.notes[0].endswith(f": {refused.value}")
    assert not (tmp_path / "ran").exists()


def test_task_in_a_file_is_not_run_and_its_command_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = f"sqlite:///{tmp_path}/toys.db"
    for topology in ("resnet", "grn-v1"):
        nas.evaluate(f"{TOYS}:Showing", preset="smoke", topology=topology, study="toys", storage=storage)
    study = nas.load("toys", storage=storage)
    with warns("skipped", option="--wirings", study="toys") as notices:
        study.report("toys.html", wirings=True)
    assert len(notices) == 1
    both, page = [f"{name} {shown_key(study, name)}" for name in ("resnet", "grn-v1")], Path("toys.html").read_text()
    assert all(name in str(notices[0]) for name in both)
    assert page.count(f"{network_of(study, 'resnet').parent}/...") == 1
    assert page.count(", ".join(both)) + page.count(", ".join(both[::-1])) == 1


def test_report_of_rows_in_a_file_has_no_wirings(
    network_study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl.write(network_study.rows(), tmp_path / "rows.jsonl")
    with warns("skipped", option="--wirings"):
        done = CliRunner().invoke(app, ["report", "--from", "rows.jsonl", "-o", "rows.html", "--wirings"])
    assert done.exit_code == 0, done.output
    page, read = Path("rows.html").read_text(), nas.load(source="rows.jsonl")
    (note,) = wirings_of(read.storage, read.rows(), read.summaries(), OBJECTIVES).notes
    assert note in page
    assert 'id="wiring-0"' not in page


def test_wirings_are_on_the_page_with_own_weights(
    network_study: Study, measured: Wirings, monkeypatch: pytest.MonkeyPatch
) -> None:
    without, own = (one for name in ("rmt(keys=4)", "ancre") for one in measured.networks if one.topology == name)
    monkeypatch.setattr(wirings, "wirings_of", lambda *_: Wirings((without, own), ()))
    page = render_page(network_study.contents([*OBJECTIVES]), wirings=True)
    parts = {name: page.count(f'id="{name}') for name in ("wiring-0", "wiring-1", "weights-0", "weights-1")}
    assert parts == {"wiring-0": 1, "wiring-1": 1, "weights-0": 0, "weights-1": 1}  # which one topology has


def test_command_and_function_ask_for_the_same_wirings(
    network_study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def noted(contents: ReportContents, **how: Any) -> str:
        calls.append((contents.name, contents.rows, how))
        return "a page"

    monkeypatch.setattr("nas.report.html.page.render_page", noted)
    words = ["report", "wired", "--storage", network_study.storage, "-o", str(tmp_path / "typed.html"), "--wirings"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    network_study.report(tmp_path / "called.html", wirings=True)
    typed, called = calls
    assert typed == called
    assert called[-1] == {"wirings": True}
    assert [(tmp_path / name).read_text() for name in ("typed.html", "called.html")] == ["a page"] * 2


@pytest.mark.outside
def test_report_without_wirings_loads_no_torch(network_study: Study, tmp_path: Path) -> None:
    program = (
        "import sys, types; from nas.cli.main import main\n"
        "sys.modules['vl_convert'] = types.SimpleNamespace(javascript_bundle=str)\n"  # which takes seconds
        "try: main()\nexcept SystemExit: pass\n"
        "sys.exit('torch' in sys.modules or 'nas.report.html.wirings' in sys.modules)"
    )
    plain = tmp_path / "plain.html"
    words = ["report", "wired", "--storage", network_study.storage, "-o", str(plain)]
    subprocess.run([sys.executable, "-c", program, *words], check=True, capture_output=True)
    assert 'id="wiring-0"' not in plain.read_text()
