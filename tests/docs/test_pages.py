"""The examples in docs run."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import nas
from doc_pages import PAGES, ROOT, blocks
from nas.workers.resources import Resources
from tasks.load import load_task
from tasks.training.contract import check_task
from toy_searches import TOYS

DOCS = ROOT / "docs"


def examples(page: str) -> list[str]:
    return blocks(DOCS / "guides" / page, "python")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.outside
def test_program_of_the_python_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    program, mistake = examples("python.md")
    names: dict[str, Any] = {}
    exec(compile(program, "python.md", "exec"), names)
    exec(compile(mistake, "python.md", "exec"), names)
    output = capsys.readouterr().out
    assert "resnet 0." in output
    assert "smok" in output  # the error message
    assert {path.name for path in Path().iterdir()} >= {"front.png", "best.safetensors", "nas-runs"}


def test_every_example_is_tested_here() -> None:
    guides = {page.relative_to(DOCS).as_posix(): page.read_text().count("\n```python\n") for page in DOCS.rglob("*.md")}
    one_each = (
        "comparing",
        "hugging-face",
        "image-task",
        "language-task",
        "lightning",
        "recorded-trainings",
        "sampler",
        "space",
        "task",
    )
    assert {page: number for page, number in guides.items() if number} == {
        "guides/python.md": 2,
        "guides/training-loop.md": 1,
        **{f"guides/{page}.md": 1 for page in one_each},
    }


def test_first_task_example_is_the_tested_moons_task() -> None:
    assert examples("task.md")[0] == (DOCS.parent / "tests" / "tasks" / "moons.py").read_text()


def test_example_of_effects_prints_the_best_topology(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = examples("comparing.md")
    exec(compile(program, "comparing.md", "exec"), {})
    assert "'verdict': 'better'" in capsys.readouterr().out


def test_own_sampler_example_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cheapest.py").write_text(examples("sampler.md")[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    study = nas.search(
        f"{TOYS}:Toy", sampler="cheapest:Cheapest", trials=3, preset="smoke", resources=Resources(1), reeval_fraction=0
    )
    first, second, third = (row.costs.flops for row in study.rows())
    assert second <= third < first  # the first trial is the base


def test_own_space_example_is_a_space() -> None:
    program: dict[str, Any] = {}
    exec(compile(examples("space.md")[0], "space.md", "exec"), program)
    space = program["shapes"](load_task("digits-vit").base)
    assert len(space) == 27
    assert load_task("digits-vit").base in [member.architecture for member in space]


@pytest.mark.outside
def test_character_model_example_is_a_task(tmp_path: Path) -> None:
    program = examples("language-task.md")[0]
    assert len(program.splitlines()) < 60
    (tmp_path / "characters.py").write_text(program)
    check_task(load_task(f"{tmp_path}/characters.py:Characters"))
    row = nas.evaluate(f"{tmp_path}/characters.py:Characters", preset="smoke", topology="dca(k=2)")
    assert row.status == "complete"
    assert row.metrics["loss"] < 5.55  # below log(256), a uniform guess


def test_own_training_example_keeps_the_contract(tmp_path: Path) -> None:
    program = examples("training-loop.md")[0]
    assert len(program.splitlines()) <= 100
    (tmp_path / "parabola.py").write_text(program)
    task = f"{tmp_path}/parabola.py:Parabola"
    check_task(load_task(task))
    steps = {"smoke": "steps=60", "proxy": "steps=400"}
    short, long = (nas.evaluate(task, preset=preset, settings=steps[preset]).metrics["loss"] for preset in steps)
    assert long < 0.01 < short  # the loss falls


@pytest.mark.outside
def test_lightning_example_is_a_task(tmp_path: Path) -> None:
    program = examples("lightning.md")[0]
    assert len(program.partition("class ScansTask")[2].splitlines()) <= 17
    (tmp_path / "scans.py").write_text(program)
    check_task(load_task(f"{tmp_path}/scans.py:ScansTask"))
    row = nas.evaluate(f"{tmp_path}/scans.py:ScansTask", preset="proxy", topology="dca(k=2)", settings="lr=0.01")
    assert row.status == "complete"
    assert row.metrics["accuracy"] > 0.9
    assert 0 < row.test["accuracy_se"] < 0.03


@pytest.mark.outside
def test_hugging_face_example_is_a_task(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    program = examples("hugging-face.md")[0]
    assert len(program.splitlines()) <= 70
    (tmp_path / "bytes_lm.py").write_text(program)
    check_task(load_task(f"{tmp_path}/bytes_lm.py:Bytes"))
    row = nas.evaluate(f"{tmp_path}/bytes_lm.py:Bytes", preset="smoke", arch="heads=2")
    assert row.status == "complete"
    assert row.metrics["loss"] < 5.55  # below log(256), a uniform guess


def test_replay_example_searches_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = examples("recorded-trainings.md")
    assert len(program.splitlines()) < 20
    exec(compile(program, "replay.md", "exec"), {})
    number, share, *_ = re.findall(r"[\d.]*\d", capsys.readouterr().out)
    assert (int(number), float(share)) > (3, 0.5)


def test_links_lead_to_files() -> None:
    targets = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)#:]+)[)#]", page.read_text())]
    assert len(targets) > 100
    assert [f"{page.name}: {to}" for page, to in targets if not (page.parent / to).exists()] == []


def test_lists_keep_their_paragraphs() -> None:
    """The site's Markdown ends a list at what follows an empty line, unless behind four spaces, or a block's eight."""
    pattern = r"^(?:[-*]|\d+\.) .*\n(?: {2,}\S.*\n)*\n(?: {2,3}| {5,7})\S.*"
    breaks = {page.name: re.findall(pattern, page.read_text(), re.MULTILINE) for page in PAGES}
    assert {name: lists for name, lists in breaks.items() if lists} == {}


@pytest.mark.outside
def test_image_example_is_a_task_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(examples("image-task.md")[0])
    random = np.random.default_rng(0)
    for split, name in product(("train", "val"), ("dark", "light")):
        folder = tmp_path / "images" / split / name
        folder.mkdir(parents=True)
        for number in range(15):
            pixels = random.integers(0, 100, (40, 40, 3)) + (150 if name == "light" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    task = f"{tmp_path}/shapes.py:Shapes"
    check_task(load_task(task, tmp_path / "images"))
    row = nas.evaluate(task, data=tmp_path / "images", preset="smoke", topology="dca(k=2)", settings="epochs=10")
    assert row.status == "complete"
    assert row.test["accuracy"] > 0.9
