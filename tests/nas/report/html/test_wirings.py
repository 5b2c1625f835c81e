"""Networks of a study in its report: which are measured, their numbers, and which are left out."""

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
    """The study's architectures, all surely on the front."""
    return [replace(architecture, p_front=1.0, on_front=True) for architecture in study.summaries()]


def wirings_in(study: Study) -> Wirings:
    return wirings_of(study.storage, study.rows(), on_the_front(study), OBJECTIVES)


def network_of(study: Study, topology: str) -> Path:
    (row,) = (row for row in study.rows() if row.architecture.topology == topology)
    return Store(study.storage).network(row.identity())


@pytest.fixture(scope="module")
def all_wirings(network_study: Study) -> Wirings:
    return wirings_in(network_study)


@pytest.fixture
def study_copy(network_study: Study, tmp_path: Path) -> Study:
    """A copy of the study in a store of its own, which tests may damage."""
    shutil.copytree(Path(network_study.storage.removeprefix("sqlite:///")).parent, tmp_path / "copied")
    return nas.load("wired", storage=f"sqlite:///{tmp_path}/copied/studies.db")


def test_numbers_are_those_of_nas_show(network_study: Study, all_wirings: Wirings) -> None:
    assert not all_wirings.notes
    assert [net.topology for net in all_wirings.networks] == [
        net.record["topology"] for net in on_the_front(network_study)
    ]
    for net in all_wirings.networks:
        report = nas.show("digits-vit", checkpoint=network_of(network_study, net.topology))
        assert net.description.startswith(report.title)
        assert net.title == f"{net.topology} {short_key(network_study, net.topology)}, seed 0"
        assert [(pair["reads"], pair["of"]) for pair in net.pairs] == [(r["reader"], r["of"]) for r in report.records]
        for name in ("weight", "gain", "share"):
            expected = [None if r[name] is None else pytest.approx(r[name], rel=1e-3) for r in report.records]
            assert [pair[name] for pair in net.pairs] == expected
        (stack,) = report.stacks
        assert [stack.readers[pair["reader"]] for pair in net.pairs] == [pair["reads"] for pair in net.pairs]
        assert [depth["layer"] for depth in net.depths] == [*stack.sources, "head"]
        assert [depth["read"] for depth in net.depths[1:]] == pytest.approx(list(stack.influence.layer_input_rms), 1e-3)
        assert [depth["made"] for depth in net.depths[:-1]] == pytest.approx(list(stack.influence.output_rms), 1e-3)
        assert stack.influence.gradient is not None
        assert [depth["gradient"] for depth in net.depths[:-1]] == pytest.approx(list(stack.influence.gradient), 1e-3)
        assert net.coefficients.keys() == stack.coefficients.keys()
        for name, expected in stack.coefficients.items():
            weights_by_place = {
                (record["row"], column): pytest.approx(weight, rel=1e-3)
                for record in coefficient_records(expected)
                for column, weight in record.items()
                if column != "row" and weight is not None
            }
            records = net.coefficients[name]
            assert {(record["row"], record["column"]): record["weight"] for record in records} == weights_by_place
            assert len(records) == len(weights_by_place)
            assert max(len(f"{record['weight']:.9f}".strip("-0.")) for record in records) <= 4  # digits
    weights = {net.topology: [*net.coefficients] for net in all_wirings.networks if net.coefficients}
    assert weights == {"ancre": ["p"]}  # block 1 has no second weight


def short_key(study: Study, topology: str) -> str:
    return next(row.architecture.key[:6] for row in study.rows() if row.architecture.topology == topology)


def test_data_is_read_once(network_study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh, calls = nas.request.job.reload_task, list[Any]()

    def record_call(*arguments: Any) -> Any:
        calls.append(arguments)
        return fresh(*arguments)

    monkeypatch.setattr(wirings, "reload_task", record_call)
    assert len(wirings_in(network_study).networks) == 3
    assert calls == [("digits-vit", None)]


def test_report_has_the_likeliest_and_names_the_others(network_study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wirings, "MAX_NETWORKS", 1)
    candidates = on_the_front(network_study)
    for best in range(3):
        chances = [replace(one, p_front=0.9 if i == best else 0.8) for i, one in enumerate(candidates)]
        result = wirings_of(network_study.storage, network_study.rows(), chances, OBJECTIVES)
        assert [network.topology for network in result.networks] == [candidates[best].record["topology"]]
        (note,) = result.notes
        assert " 1 " in note
        assert all(
            (str(architecture.record["topology"]) in note) is (i != best) for i, architecture in enumerate(candidates)
        )


def test_report_has_the_best_by_metric_without_probabilities(
    network_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wirings, "MAX_NETWORKS", 1)
    unknown = [
        replace(one, p_front=float("nan"), expected={"accuracy": accuracy, "flops": 1})
        for one, accuracy in zip(on_the_front(network_study), (0.5, 0.4, 0.6), strict=True)
    ]
    for direction, best in (("max", 2), ("min", 1)):
        objectives: dict[str, Any] = {"accuracy": direction, "flops": "min"}
        result = wirings_of(network_study.storage, network_study.rows(), unknown, objectives)
        assert result.networks[0].topology == unknown[best].record["topology"]


def test_report_leaves_out_networks_behind_the_front(network_study: Study) -> None:
    first, *others = on_the_front(network_study)
    behind = [replace(architecture, p_front=0.01, on_front=False) for architecture in others]
    result = wirings_of(network_study.storage, network_study.rows(), [first, *behind], OBJECTIVES)
    assert (len(result.networks), result.notes) == (1, ())


def test_notes_name_missing_and_damaged_networks(study_copy: Study) -> None:
    shutil.rmtree(network_of(study_copy, "ancre"))
    (network_of(study_copy, "dca(k=2)") / WEIGHTS).write_bytes(b"no weights")
    result = wirings_in(study_copy)
    assert [network.topology for network in result.networks] == ["rmt(keys=4)"]
    damage_note, loss_note = result.notes
    with raises("bad-file", path=str(network_of(study_copy, "dca(k=2)") / WEIGHTS)) as error:
        nas.show("digits-vit", checkpoint=network_of(study_copy, "dca(k=2)"))
    assert damage_note == f"dca(k=2) {short_key(study_copy, 'dca(k=2)')}: {error.value}"
    assert [(error.kind, error.fields) for error in result.errors] == [("bad-file", error.value.fields)]
    assert loss_note.startswith(f"ancre {short_key(study_copy, 'ancre')}: ")
    assert "`nas search --save-models all`" in loss_note


def test_record_of_a_checkpoint_runs_no_code(study_copy: Study, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    record = network_of(study_copy, "ancre") / RECORD
    record.write_text(record.read_text().replace("digits-vit", f"{tmp_path}/evil.py:Evil"))
    result = wirings_in(study_copy)
    assert len(result.networks) == 2
    with raises("missing-value", option="--task", task=f"{tmp_path}/evil.py:Evil") as error:
        origin_of(record.parent, load=nas.request.job.reload_task)
    assert result.notes[0].endswith(f": {error.value}")
    assert not (tmp_path / "ran").exists()


def test_task_in_a_file_does_not_run_and_a_note_gives_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = f"sqlite:///{tmp_path}/toys.db"
    for topology in ("resnet", "grn-v1"):
        nas.evaluate(f"{TOYS}:Showing", preset="smoke", topology=topology, study="toys", storage=storage)
    study = nas.load("toys", storage=storage)
    with warns("skipped", option="--topologies", study="toys") as notices:
        study.report("toys.html", topologies=True)
    assert len(notices) == 1
    both, page = [f"{name} {short_key(study, name)}" for name in ("resnet", "grn-v1")], Path("toys.html").read_text()
    assert all(name in str(notices[0]) for name in both)
    assert page.count(f"{network_of(study, 'resnet').parent}/...") == 1
    assert page.count(", ".join(both)) + page.count(", ".join(both[::-1])) == 1


def test_report_of_rows_in_a_file_has_no_wirings(
    network_study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl.write(network_study.rows(), tmp_path / "rows.jsonl")
    with warns("skipped", option="--topologies"):
        process = CliRunner().invoke(app, ["report", "--from", "rows.jsonl", "-o", "rows.html", "--topologies"])
    assert process.exit_code == 0, process.output
    page, study = Path("rows.html").read_text(), nas.load(source="rows.jsonl")
    (note,) = wirings_of(study.storage, study.rows(), study.summaries(), OBJECTIVES).notes
    assert note in page
    assert 'id="wiring-0"' not in page


def test_wirings_are_on_the_page_with_own_weights(
    network_study: Study, all_wirings: Wirings, monkeypatch: pytest.MonkeyPatch
) -> None:
    without, own = (
        network for name in ("rmt(keys=4)", "ancre") for network in all_wirings.networks if network.topology == name
    )
    monkeypatch.setattr(wirings, "wirings_of", lambda *_: Wirings((without, own), ()))
    page = render_page(network_study.contents([*OBJECTIVES]), topologies=True)
    parts = {name: page.count(f'id="{name}') for name in ("wiring-0", "wiring-1", "weights-0", "weights-1")}
    assert parts == {"wiring-0": 1, "wiring-1": 1, "weights-0": 0, "weights-1": 1}  # only one topology has own weights


def test_command_and_function_ask_for_the_same_wirings(
    network_study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def record_page(contents: ReportContents, **how: Any) -> str:
        calls.append((contents.name, contents.rows, how))
        return "a page"

    monkeypatch.setattr("nas.report.html.page.render_page", record_page)
    words = ["report", "wired", "--storage", network_study.storage, "-o", str(tmp_path / "typed.html"), "--topologies"]
    process = CliRunner().invoke(app, words)
    assert process.exit_code == 0, process.output
    network_study.report(tmp_path / "called.html", topologies=True)
    by_command, by_function = calls
    assert by_command == by_function
    assert by_function[-1] == {"topologies": True}
    assert [(tmp_path / name).read_text() for name in ("typed.html", "called.html")] == ["a page"] * 2


@pytest.mark.outside
def test_report_without_wirings_loads_no_torch(network_study: Study, tmp_path: Path) -> None:
    program = (
        "import sys, types; from nas.cli.main import main\n"
        "sys.modules['vl_convert'] = types.SimpleNamespace(javascript_bundle=str)\n"  # the real one takes seconds
        "try: main()\nexcept SystemExit: pass\n"
        "sys.exit('torch' in sys.modules or 'nas.report.html.wirings' in sys.modules)"
    )
    plain = tmp_path / "plain.html"
    words = ["report", "wired", "--storage", network_study.storage, "-o", str(plain)]
    subprocess.run([sys.executable, "-c", program, *words], check=True, capture_output=True)
    assert 'id="wiring-0"' not in plain.read_text()
