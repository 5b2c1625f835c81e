"""The pages in docs: their examples run as they stand."""

import re
from pathlib import Path

import pytest

import nas
from tasks.load import load_task
from tasks.testing import check_task

DOCS = Path(__file__).parents[2] / "docs"


def examples(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_python_does_what_its_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = examples("python.md")
    exec(compile(program, "python.md", "exec"), {})
    assert "resnet 0." in capsys.readouterr().out
    assert {path.name for path in Path().iterdir()} >= {"front.png", "best.safetensors", "nas-runs"}


def test_the_character_model_is_a_task(tmp_path: Path) -> None:
    program = examples("tasks.md")[0]
    assert len(program.splitlines()) < 60
    (tmp_path / "characters.py").write_text(program)
    check_task(load_task(f"{tmp_path}/characters.py:Characters"))
    row = nas.evaluate(f"{tmp_path}/characters.py:Characters", preset="smoke", topology="dca(k=2)")
    assert row.status == "complete"
    assert row.metrics["loss"] < 5.55  # log(256): it has learnt something


def test_a_training_by_oneself_keeps_the_contract(tmp_path: Path) -> None:
    program = examples("tasks.md")[1]
    assert len(program.splitlines()) <= 100
    (tmp_path / "parabola.py").write_text(program)
    task = f"{tmp_path}/parabola.py:Parabola"
    check_task(load_task(task))
    short, long = (nas.evaluate(task, preset=preset).metrics["loss"] for preset in ("smoke", "proxy"))
    assert long < 0.01 < short  # it has learnt something


def test_a_lightning_module_is_a_task(tmp_path: Path) -> None:
    program = examples("tasks.md")[2]
    assert len(program.partition("class ScansTask")[2].splitlines()) <= 17
    (tmp_path / "scans.py").write_text(program)
    check_task(load_task(f"{tmp_path}/scans.py:ScansTask"))
    row = nas.evaluate(f"{tmp_path}/scans.py:ScansTask", preset="proxy", topology="dca(k=2)", settings="lr=0.01")
    assert row.status == "complete"
    assert row.metrics["accuracy"] > 0.9
    assert 0 < row.test["accuracy_se"] < 0.03


def test_a_model_by_hugging_faces_convention_is_a_task(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    program = examples("tasks.md")[3]
    assert len(program.splitlines()) <= 70
    (tmp_path / "bytes_lm.py").write_text(program)
    check_task(load_task(f"{tmp_path}/bytes_lm.py:Bytes"))
    row = nas.evaluate(f"{tmp_path}/bytes_lm.py:Bytes", preset="smoke", arch="heads=2")
    assert row.status == "complete"
    assert row.metrics["loss"] < 5.55  # log(256): it has learnt something


def test_somebody_elses_algorithm_asks_a_table_in_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = examples("replay.md")
    assert len(program.splitlines()) < 20
    exec(compile(program, "replay.md", "exec"), {})
    number, share = re.fullmatch(r"(\d) architectures, worth (0\.\d\d) of .*\n", capsys.readouterr().out).groups()  # type: ignore[union-attr]
    assert (int(number), float(share)) > (3, 0.5)


@pytest.mark.parametrize("page", [path.name for path in DOCS.glob("*.md")])
def test_every_link_leads_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (DOCS / page).read_text()):
        assert (DOCS / target).exists(), target
