"""The release's own files, read as the official pipelines read them, and what is said where they are not there."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from search_spaces.errors import UserError
from tasks.lra.image import LRAImage
from tasks.lra.listops import LRAListOps
from tasks.lra.lists import IDS
from tasks.lra.pathfinder import LRAPathfinder
from tasks.lra.retrieval import LRARetrieval
from tasks.lra.task import LongRangeTask
from tasks.lra.text import LRAText

CPU = torch.device("cpu")


def test_lists_are_words_without_round_brackets_padded_behind(listops_folder: Path) -> None:
    splits = LRAListOps(listops_folder).load()
    assert [len(answers) for _, answers in (splits.train, splits.validation, splits.test)] == [18, 6, 3]
    ids, answers = splits.test
    assert answers.tolist() == [9, 1, 2]
    assert ids.shape == (3, 2048)
    known = [IDS[word] for word in "[SM 5 6 [MIN 0 7 ] ]".split()]
    assert ids[1, : len(known)].tolist() == known
    assert not ids[1, len(known) :].any()
    assert 0 not in IDS.values()


def test_given_lists_are_not_cut_by_a_preset(listops_folder: Path) -> None:
    task = LRAListOps(listops_folder)
    assert task.splits_for(task.presets["smoke"]).train[0].shape == (18, 2048)


@pytest.mark.parametrize("line", ["( [MAX 2 3 ] )\t12", "( [FIRST 2 3 ] )\t2", "( [MAX 2 3 ] )", "\t3"])
def test_a_line_that_is_no_list_is_named(listops_folder: Path, line: str) -> None:
    path = next(listops_folder.rglob("basic_val.tsv"))
    path.write_text(f"Source\tTarget\n( [MAX 2 3 ] )\t3\n{line}\n")
    with pytest.raises(UserError, match=r"basic_val\.tsv, line 3, must be a list of"):
        LRAListOps(listops_folder).load()


def test_a_table_of_something_else_is_a_mistake(listops_folder: Path) -> None:
    next(listops_folder.rglob("basic_val.tsv")).write_text("a\tb\n")
    with pytest.raises(UserError, match="must begin with the columns Source and Target"):
        LRAListOps(listops_folder).load()


def test_a_review_is_its_bytes_and_1_and_the_last_tenth_of_each_class_validates(imdb_folder: Path) -> None:
    splits = LRAText(imdb_folder).load()
    assert [len(answers) for _, answers in (splits.train, splits.validation, splits.test)] == [36, 4, 10]
    assert splits.validation[1].tolist() == [0, 0, 1, 1]
    ids = splits.validation[0][3]
    known = "train 19: good <br />café".encode()
    assert ids.shape == (4096,)
    assert ids[: len(known)].tolist() == [byte + 1 for byte in known]
    assert not ids[len(known) :].any()


def test_four_thousand_bytes_of_a_review_are_read(imdb_folder: Path) -> None:
    (imdb_folder / "aclImdb" / "test" / "neg" / "0_2.txt").write_bytes(b"\xff" * 5000)
    ids = LRAText(imdb_folder).load().test[0][0]
    assert (ids[:4000] == 256).all()
    assert not ids[4000:].any()


def test_two_papers_are_one_example_and_quotation_marks_mean_nothing(aan_folder: Path) -> None:
    splits = LRARetrieval(aan_folder).load()
    assert [len(answers) for _, answers in (splits.train, splits.validation, splits.test)] == [8, 4, 4]
    ids, answers = splits.validation
    assert ids.shape == (4, 2, 4096)
    assert answers.tolist() == [0, 1, 0, 1]
    texts = ["".join(chr(number - 1) for number in text if number) for text in ids[3].tolist()]
    assert texts == ["b'eval \"3'", "b'cited 3'"]


def test_a_pair_with_a_column_less_is_named(aan_folder: Path) -> None:
    with next(aan_folder.rglob("*.eval.tsv")).open("a") as file:
        file.write("1.0\tA\tB\tone text\n")
    with pytest.raises(UserError, match=r"eval\.tsv, line 5, must be 0\.0 or 1\.0, two names and two texts"):
        LRARetrieval(aan_folder).load()


def test_pixels_are_weighted_and_rounded_as_tensorflow_does(cifar10_folder: Path) -> None:
    task = LRAImage(cifar10_folder)
    ids, _ = task.load().test
    colours = np.load(cifar10_folder / "cifar-10-batches-py" / "test_batch", allow_pickle=True)["data"]
    assert ids.shape == (20, 1024)
    for pixel in (0, 37, 1023):
        red, green, blue = (np.float32(colours[4, pixel + 1024 * channel]) / np.float32(255) for channel in range(3))
        grey = np.float32(0.2989) * red + np.float32(0.587) * green + np.float32(0.114) * blue
        assert ids[4, pixel] == int(grey * np.float32(255.5))


def test_the_images_of_the_metadata_are_dealt_out_and_an_empty_file_is_left_out(pathfinder_folder: Path) -> None:
    splits = LRAPathfinder(pathfinder_folder).load()
    parts = (splits.train, splits.validation, splits.test)
    assert [len(answers) for _, answers in parts] == [16, 2, 2]
    named = {int(ids[0]): (ids, int(answer)) for part in parts for ids, answer in zip(*part, strict=True)}
    assert sorted(named) == [*range(7), *range(10, 17), *range(20, 26)]
    assert all(answer == name % 10 % 2 for name, (_, answer) in named.items())
    path = pathfinder_folder / "pathfinder32" / "curv_contour_length_14" / "imgs" / "1" / "sample_3.png"
    assert named[13][0].tolist() == np.asarray(Image.open(path)).flatten().tolist()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "imgs/1/sample_2.png").unlink(), r"sample_2\.png', which 1\.npy lists, is missing"),
        (lambda folder: (folder / "imgs/1/sample_2.png").write_bytes(b"text"), r"sample_2\.png' is no image"),
        (lambda folder: Image.new("RGB", (32, 32)).save(folder / "imgs/1/sample_2.png"), "must be 32 x 32 grey bytes"),
        (lambda folder: np.save(folder / "metadata/1.npy", np.arange(3)), r"1\.npy must have lines like"),
        (
            lambda folder: [path.unlink() for path in folder.glob("metadata/*")],
            r"list images in files like 0\.npy",
        ),
    ],
)
def test_what_is_wrong_with_an_image_is_said(pathfinder_folder: Path, change: object, said: str) -> None:
    change(pathfinder_folder / "pathfinder32" / "curv_contour_length_14")  # type: ignore[operator]
    with pytest.raises(UserError, match=said):
        LRAPathfinder(pathfinder_folder).load()


RELEASES = [
    (LRAListOps, "listops_folder", "lra_release/lra_release/listops-1000", "basic_val.tsv"),
    (LRAText, "imdb_folder", "aclImdb", "test/pos"),
    (LRARetrieval, "aan_folder", "lra_release/lra_release/tsv_data", "new_aan_pairs.eval.tsv"),
    (LRAPathfinder, "pathfinder_folder", "pathfinder32/curv_contour_length_14", "metadata"),
]


@pytest.mark.parametrize(("kind", "fixture", "folder", "name"), RELEASES)
def test_the_folder_may_be_the_files_own_or_one_around_it(
    kind: type[LongRangeTask], fixture: str, folder: str, name: str, request: pytest.FixtureRequest
) -> None:
    root: Path = request.getfixturevalue(fixture)
    own = kind(root / folder).load()
    assert own.fingerprint == kind(root).load().fingerprint
    assert own.fingerprint == kind((root / folder).parent).load().fingerprint


@pytest.mark.parametrize(("kind", "fixture", "folder", "name"), RELEASES)
def test_a_missing_file_is_named_with_its_layout_before_anything_is_trained(
    kind: type[LongRangeTask], fixture: str, folder: str, name: str, request: pytest.FixtureRequest
) -> None:
    root: Path = request.getfixturevalue(fixture)
    path = root / folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(
        UserError, match=rf"{re.escape(name)} is missing from '.*', the folder .* with .*{re.escape(name)}"
    ):
        kind(root).prepare()


@pytest.mark.parametrize(("kind", "fixture", "folder", "name"), RELEASES)
def test_a_folder_of_something_else_is_a_mistake(
    kind: type[LongRangeTask], fixture: str, folder: str, name: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=rf"--data of task '{kind.name}' must be the folder .*{re.escape(name)}.*, got"):
        kind(tmp_path).prepare()


@pytest.mark.parametrize("kind", [LRAText, LRARetrieval, LRAImage])
def test_a_task_that_needs_data_says_which_and_where_it_is_to_be_had(kind: type[LongRangeTask]) -> None:
    with pytest.raises(UserError, match=rf"task '{kind.name}' reads .*--data FOLDER; https://"):
        kind().prepare()
