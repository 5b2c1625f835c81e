"""The release's files, read like the official pipelines, and errors."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.datasets import CIFAR10

from expect import raises
from search_spaces.support.errors import Kind
from tasks.lra.image import LRAImage
from tasks.lra.list_grammar import IDS
from tasks.lra.listops import LRAListOps
from tasks.lra.pathfinder import LRAPathfinder
from tasks.lra.release import RELEASE
from tasks.lra.retrieval import LRARetrieval
from tasks.lra.task import LongRangeTask
from tasks.lra.text import LRAText

IMDB = "https://ai.stanford.edu/~amaas/data/sentiment"
CPU = torch.device("cpu")


def test_lists_are_read_without_round_brackets_and_padded(listops_folder: Path) -> None:
    splits = LRAListOps(listops_folder).load()
    assert [len(answers) for _, answers in (splits.train, splits.validation, splits.test)] == [18, 6, 3]
    ids, answers = splits.test
    assert answers.tolist() == [9, 1, 2]
    assert ids.shape == (3, 2048)
    expected = [IDS[word] for word in "[SM 5 6 [MIN 0 7 ] ]".split()]
    assert ids[1, : len(expected)].tolist() == expected
    assert not ids[1, len(expected) :].any()
    assert 0 not in IDS.values()


def test_a_preset_does_not_cut_given_lists(listops_folder: Path) -> None:
    task = LRAListOps(listops_folder)
    assert task.splits_for(task.presets["smoke"]).train[0].shape == (18, 2048)


def test_names_a_line_that_is_no_list(listops_folder: Path) -> None:
    path = next(listops_folder.rglob("basic_val.tsv"))
    for line in ("( [MAX 2 3 ] )\t12", "( [FIRST 2 3 ] )\t2", "( [MAX 2 3 ] )", "\t3"):
        path.write_text(f"Source\tTarget\n( [MAX 2 3 ] )\t3\n{line}\n")
        with raises("bad-data", path=str(path), line=3):
            LRAListOps(listops_folder).load()
    path.write_text("a\tb\n")
    with raises("bad-data", path=str(path), line=1):
        LRAListOps(listops_folder).load()


def test_reviews_are_bytes_and_a_tenth_of_each_class_validates(imdb_folder: Path) -> None:
    splits = LRAText(imdb_folder).load()
    assert [len(answers) for _, answers in (splits.train, splits.validation, splits.test)] == [36, 4, 10]
    assert splits.validation[1].tolist() == [0, 0, 1, 1]
    ids = splits.validation[0][3]
    expected = "train 19: good <br />café".encode()
    assert ids.shape == (4096,)
    assert ids[: len(expected)].tolist() == [byte + 1 for byte in expected]
    assert not ids[len(expected) :].any()


def test_reads_four_thousand_bytes_of_a_review(imdb_folder: Path) -> None:
    (imdb_folder / "aclImdb" / "test" / "neg" / "0_2.txt").write_bytes(b"\xff" * 5000)
    ids = LRAText(imdb_folder).load().test[0][0]
    assert (ids[:4000] == 256).all()
    assert not ids[4000:].any()


def test_two_papers_are_one_example_with_quotation_marks_as_text(aan_folder: Path) -> None:
    splits = LRARetrieval(aan_folder).load()
    assert [len(answers) for _, answers in (splits.train, splits.validation, splits.test)] == [8, 4, 4]
    ids, answers = splits.validation
    assert ids.shape == (4, 2, 4096)
    assert answers.tolist() == [0, 1, 0, 1]
    texts = ["".join(chr(number - 1) for number in text if number) for text in ids[3].tolist()]
    assert texts == ["b'eval \"3'", "b'cited 3'"]


def test_names_a_line_without_two_papers(aan_folder: Path) -> None:
    path = next(aan_folder.rglob("*.eval.tsv"))
    with path.open("a") as file:
        file.write("1.0\tA\tB\tone text\n")
    with raises("bad-data", path=str(path), line=5):
        LRARetrieval(aan_folder).load()


def test_grey_values_match_tensorflows(cifar10_folder: Path) -> None:
    task = LRAImage(cifar10_folder)
    ids, _ = task.load().test
    colors = np.load(cifar10_folder / "cifar-10-batches-py" / "test_batch", allow_pickle=True)["data"]
    assert ids.shape == (20, 1024)
    for pixel in (0, 37, 1023):
        red, green, blue = (np.float32(colors[4, pixel + 1024 * channel]) / np.float32(255) for channel in range(3))
        grey = np.float32(0.2989) * red + np.float32(0.587) * green + np.float32(0.114) * blue
        assert ids[4, pixel] == int(grey * np.float32(255.5))


def test_images_of_the_metadata_are_split_and_empty_files_skipped(pathfinder_folder: Path) -> None:
    splits = LRAPathfinder(pathfinder_folder).load()
    parts = (splits.train, splits.validation, splits.test)
    assert [len(answers) for _, answers in parts] == [16, 2, 2]
    examples = {int(ids[0]): (ids, int(answer)) for part in parts for ids, answer in zip(*part, strict=True)}
    assert sorted(examples) == [*range(7), *range(10, 17), *range(20, 26)]
    assert all(answer == name % 10 % 2 for name, (_, answer) in examples.items())
    path = pathfinder_folder / "pathfinder32" / "curv_contour_length_14" / "imgs" / "1" / "sample_3.png"
    assert examples[13][0].tolist() == np.asarray(Image.open(path)).flatten().tolist()


@pytest.mark.parametrize(
    ("file", "change", "kind"),
    [
        ("imgs/1/sample_2.png", Path.unlink, "missing-data"),
        ("imgs/1/sample_2.png", lambda path: path.write_bytes(b"text"), "bad-file"),
        ("imgs/1/sample_2.png", Image.new("RGB", (32, 32)).save, "bad-data"),
        ("metadata/1.npy", lambda path: np.save(path, np.arange(3)), "bad-data"),
        ("metadata", lambda path: [file.unlink() for file in path.iterdir()], "missing-data"),
    ],
)
def test_names_a_bad_image_or_list_of_images(
    pathfinder_folder: Path, file: str, change: Callable[[Path], object], kind: Kind
) -> None:
    path = pathfinder_folder / "pathfinder32" / "curv_contour_length_14" / file
    change(path)
    with raises(kind, path=str(path)):
        LRAPathfinder(pathfinder_folder).load()


RELEASES = [
    (LRAListOps, "listops_folder", "lra_release/lra_release/listops-1000", "basic_val.tsv"),
    (LRAText, "imdb_folder", "aclImdb", "test/pos"),
    (LRARetrieval, "aan_folder", "lra_release/lra_release/tsv_data", "new_aan_pairs.eval.tsv"),
    (LRAPathfinder, "pathfinder_folder", "pathfinder32/curv_contour_length_14", "metadata"),
]


@pytest.mark.parametrize(("kind", "fixture", "folder", "name"), RELEASES)
def test_finds_its_files_and_names_one_that_is_missing(
    kind: type[LongRangeTask], fixture: str, folder: str, name: str, request: pytest.FixtureRequest
) -> None:
    root: Path = request.getfixturevalue(fixture)
    places = (root / folder, root, (root / folder).parent)
    assert len({kind(place).load().fingerprint for place in places}) == 1
    path = root / folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with raises("missing-data", path=str(root / folder), value=name) as error:
        kind(root).prepare()
    assert name in error.value.fields["choices"]


def test_refuses_a_folder_of_something_else(tmp_path: Path) -> None:
    for kind, _, _, name in RELEASES:
        with raises("missing-data", option="--data", path=str(tmp_path), task=kind.name) as error:
            kind(tmp_path).prepare()
        assert name in error.value.fields["choices"]


def test_asks_for_data_with_its_source() -> None:
    for kind, source in ((LRAText, IMDB), (LRARetrieval, RELEASE), (LRAImage, CIFAR10.url)):
        with raises("missing-data", option="--data", task=kind.name, source=source):
            kind().prepare()
