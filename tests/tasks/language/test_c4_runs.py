"""C4 from files to results, and errors of data."""

import gzip
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from expect import raises, warns
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import Kind
from search_spaces.support.progress import Progress
from tasks.base import FitResult
from tasks.language import data, hub
from tasks.language.data import LanguageSplits
from tasks.language.language_presets import LanguageRecipe
from tasks.language.published_tasks import C4LM, OpenWebTextLM
from tasks.language.row_layouts import IGNORE_INDEX
from tasks.language.task import CorpusTask
from tasks.language.tokenizer import Tokenizer
from tasks.run import CONTINUE, STOP, Decision, Run

SMALL = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=16)
Report = tuple[int, dict[str, float]]
CPU = torch.device("cpu")

pytestmark = pytest.mark.filterwarnings("ignore:c4-train:UserWarning")


class SmallC4(C4LM):
    """C4 with short rows and the tests' small vocabulary."""

    vocabulary, context = 300, 64


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: False)


def test_trains_and_measures_on_a_folder_and_counts_skipped_documents(shared_c4: Path) -> None:
    task, recipe = SmallC4(shared_c4), C4LM.presets["smoke"]
    result = task.fit(Run(architecture=SMALL, recipe=recipe, seed=0))
    assert result.steps == 2
    assert len(task.fingerprint(recipe)) == 64
    for metrics in (result.metrics, result.test):
        assert metrics["loss"] == pytest.approx(5.70, abs=0.1)  # log 300: untrained
        assert {"perplexity", "bits_per_byte", "loss_se", "perplexity_se", "bits_per_byte_se"} <= set(metrics)
    assert result.extra_metrics["skipped_documents"] == 1
    assert "skipped_documents" not in result.test


@pytest.mark.parametrize("kind", [C4LM, OpenWebTextLM])
def test_reading_resumes_at_any_position(kind: type[CorpusTask], shared_c4: Path) -> None:
    recipe = kind.presets["smoke"]

    def read(start: tuple[int, ...], batches: int) -> list[tuple[torch.Tensor, tuple[int, ...]]]:
        rows = kind(shared_c4).splits.training_batches(recipe, 0, start, CPU)
        return [(inputs, progress) for _, ((inputs, _), progress) in zip(range(batches), rows, strict=False)]

    whole = read((), 60)
    for at in (0, 17, 40):
        for (inputs, progress), (expected, there) in zip(read(whole[at][1], 19), whole[at + 1 :], strict=False):
            assert progress == there
            assert torch.equal(inputs, expected)


def test_validation_and_test_halve_the_held_out_documents(c4: Path, tokenizer: Tokenizer) -> None:
    splits = C4LM(c4).splits
    assert isinstance(splits, LanguageSplits)
    recipe = C4LM.presets["paper"]
    rows = [
        {tuple(row.tolist()) for inputs, _ in splits.evaluation_batches(part, recipe, CPU) for row in inputs}
        for part in ("validation", "test")
    ]
    assert all(rows)
    assert not rows[0] & rows[1]
    assert len(rows[0] | rows[1]) == 40


def test_padding_is_not_measured_and_all_other_bytes_are(c4: Path) -> None:
    recipe = C4LM.presets["paper"]
    for inputs, answers in C4LM(c4).splits.evaluation_batches("test", recipe, CPU):
        targets, sizes, documents = answers.unbind(-1)
        assert (documents == documents[:, :1]).all()
        assert torch.equal(targets[:, :-1][targets[:, :-1] >= 0], inputs[:, 1:][targets[:, :-1] >= 0])
        assert (sizes[targets == IGNORE_INDEX] <= 0).all()


def test_without_other_splits_the_last_file_gives_held_out_documents(tmp_path: Path, c4: Path) -> None:
    for path in c4.glob("c4-validation*"):
        path.unlink()
    _, last = sorted(c4.glob("c4-train*"))
    last.unlink()
    (c4 / "c4-train.00001-of-00002.json.gz").write_bytes(
        gzip.compress(b"".join(b'{"text": "story %d"}\n' % number for number in range(400)))
    )
    splits = C4LM(c4).splits
    recipe = C4LM.presets["paper"]
    held_out = [
        sum(len(inputs) for inputs, _ in splits.evaluation_batches(part, recipe, CPU))
        for part in ("validation", "test")
    ]
    assert all(5 <= documents <= 40 for documents in held_out)


def test_a_limit_on_measured_rows_keeps_whole_documents(c4: Path) -> None:
    task = C4LM(c4)
    rows = sum(len(inputs) for inputs, _ in task.splits.evaluation_batches("test", task.presets["smoke"], CPU))
    assert 1 < rows < 40


@pytest.mark.parametrize(("limit", "total"), [(7, 7), (0, None)])
def test_progress_counts_rows_of_held_out_documents(
    limit: int, total: int | None, c4: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[object] = []

    class RecordingProgress(Progress):
        def __init__(self, title: str, total: int | None) -> None:
            super().__init__(title, total)
            counts.append(total)

        def set_done(self, number: int, last: str = "") -> None:
            counts.append(number)

    monkeypatch.setattr(data, "Progress", RecordingProgress)
    monkeypatch.setattr(data, "BLOCK", 2)
    data.read_held_out.cache_clear()
    recipe = replace(C4LM.presets["smoke"], measured=limit)
    rows = sum(len(inputs) for inputs, _ in C4LM(c4).splits.evaluation_batches("test", recipe, CPU))
    assert counts[0] == total
    assert len(counts) > 3
    assert counts[1:] == sorted(counts[1:])
    assert counts[-1] == (limit or rows)


def test_fingerprint_depends_on_data_and_tokenizer(c4: Path) -> None:
    prints = [C4LM(c4).splits.fingerprint, C4LM(Path(f"{c4},tokenizer=trained")).splits.fingerprint]
    with (c4 / "c4-validation.00000-of-00001.json.gz").open("ab") as file:
        file.write(gzip.compress(b'{"text": "one more"}\n'))
    prints.append(C4LM(c4).splits.fingerprint)
    assert len(set(prints)) == 3


@pytest.mark.parametrize(
    ("data", "kind", "fields"),
    [
        (None, "unavailable", {"value": "allenai/c4"}),
        ("owner/name", "unavailable", {"value": "owner/name"}),
        ("no-such-folder", "missing-data", {"option": "--data", "path": "no-such-folder"}),
        ("{c4}/tokenizer.json", "missing-data", {"option": "--data", "path": "{c4}/tokenizer.json"}),
        ("{c4}/empty", "missing-data", {"path": "{c4}/empty", "split": "train"}),
        ("{c4},tokenizer=nobody/nothing", "unavailable", {"value": "nobody/nothing", "file": "tokenizer.json"}),
        (
            "{c4},tokenizer={c4}/c4-train.00000-of-00002.json.gz",
            "bad-file",
            {"path": "{c4}/c4-train.00000-of-00002.json.gz"},
        ),
    ],
)
def test_refuses_data_that_is_missing(c4: Path, data: str | None, kind: Kind, fields: dict[str, str]) -> None:
    (c4 / "empty").mkdir()
    task = C4LM(Path(data.format(c4=c4)) if data else None)
    with raises(kind, **{name: value.format(c4=c4) for name, value in fields.items()}):
        task.fit(Run(architecture=SMALL, recipe=task.presets["smoke"], seed=0))


def test_refuses_a_tokenizer_larger_than_the_vocabulary(c4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(C4LM, "vocabulary", 256)
    with raises("mismatch", task="c4-lm", value=300, most=256):
        C4LM(c4).splits  # noqa: B018  # a property


def test_refuses_files_without_the_column_of_texts(c4: Path) -> None:
    for path in c4.glob("c4-train*"):
        path.write_bytes(gzip.compress(b'{"content": "words"}\n' * 3))
    first = "c4-train.00000-of-00002.json.gz"
    with warns("skipped", shard=first, line=1), raises("missing-data", option="--data") as error:
        C4LM(c4).fit(Run(architecture=SMALL, recipe=C4LM.presets["smoke"], seed=0))
    assert first in error.value.fields["shards"]


def test_streams_a_data_set_from_the_hub(monkeypatch: pytest.MonkeyPatch, shared_c4: Path) -> None:
    datasets = pytest.importorskip("datasets")

    class Info:
        sha = "abc"

    def load_dataset(name: str, subset: str | None, *, streaming: bool, revision: str) -> object:
        assert (name, subset, streaming, revision) == ("allenai/c4", "en", True, "abc")
        texts = {"train": [f"text {i}" for i in range(30)], "validation": [f"held out {i}" for i in range(30)]}
        return {split: datasets.Dataset.from_dict({"text": t}).to_iterable_dataset(3) for split, t in texts.items()}

    monkeypatch.setattr(hub, "reachable", lambda: True)
    monkeypatch.setattr(hub.huggingface_hub, "dataset_info", lambda name, revision: Info)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    result = SmallC4(Path(f"tokenizer={shared_c4}/tokenizer.json")).fit(
        Run(architecture=SMALL, recipe=C4LM.presets["smoke"], seed=0)
    )
    assert result.metrics["loss"] == pytest.approx(5.70, abs=0.1)


SHORT = LanguageRecipe(steps=6, batch=4, accumulate=2, lr=1e-2, measured=8, reports=3, accelerator="cpu")


@pytest.fixture(scope="module")
def whole(shared_c4: Path) -> tuple[FitResult, list[Report]]:
    """An uninterrupted training."""
    return fit(shared_c4, None)


def fit(c4: Path, folder: Path | None, act: Callable[[int], Decision] = lambda _: CONTINUE) -> Any:
    counts: list[Report] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        counts.append((step, dict(metrics)))
        return act(step)

    return SmallC4(c4).fit(Run(architecture=SMALL, recipe=SHORT, seed=0, folder=folder, report=report)), counts


@pytest.mark.parametrize("stop", [2, 4])
def test_resume_of_a_stopped_training_gives_the_same_numbers(
    shared_c4: Path, tmp_path: Path, stop: int, whole: tuple[FitResult, list[Report]]
) -> None:
    result, counts = fit(shared_c4, tmp_path, lambda step: STOP if step == stop else CONTINUE)
    assert (result.steps, result.metrics) == counts[-1]
    assert result.steps == stop
    assert list(tmp_path.glob("*.ckpt"))
    assert fit(shared_c4, tmp_path) == whole
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("checkpoint_each_step")
def test_resume_after_a_kill_gives_the_same_numbers(
    shared_c4: Path, tmp_path: Path, whole: tuple[FitResult, list[Report]]
) -> None:
    def die(step: int) -> Decision:
        if step == 4:
            raise MemoryError("killed")
        return CONTINUE

    with pytest.raises(MemoryError):
        fit(shared_c4, tmp_path, die)
    assert fit(shared_c4, tmp_path) == whole
