"""C4 from its files to a Row: what a user types, and what can go wrong."""

import gzip
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from tasks import checkpoint
from tasks.language import data, hub
from tasks.language.data import LanguageSplits
from tasks.language.presets import LanguageRecipe
from tasks.language.published import C4LM, OpenWebTextLM
from tasks.language.rows import IGNORED
from tasks.language.task import CorpusTask
from tasks.language.tokenizer import Tokenizer
from tasks.progress import Progress
from tasks.run import CONTINUE, STOP, Decision, Run

SMALL = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=16)
CPU = torch.device("cpu")

pytestmark = pytest.mark.filterwarnings("ignore:c4-train:UserWarning")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: False)


def test_a_folder_of_c4_is_trained_and_measured_on_and_what_was_skipped_is_in_the_result(c4: Path) -> None:
    told: list[int] = []
    fitted = C4LM(c4).fit(
        Run(
            architecture=SMALL,
            recipe=C4LM.presets["smoke"],
            seed=0,
            report=lambda step, metrics: told.append(step) or CONTINUE,
        )
    )
    assert fitted.steps == 2
    assert len(C4LM(c4).fingerprint(C4LM.presets["smoke"])) == 64
    for metrics in (fitted.metrics, fitted.test):
        assert metrics["loss"] == pytest.approx(10.37, abs=0.1)  # log 32000: nothing is learnt in two steps
        assert {"perplexity", "bits_per_byte", "loss_se", "perplexity_se", "bits_per_byte_se"} <= set(metrics)
    assert fitted.measures["skipped_documents"] == 1
    assert "skipped_documents" not in fitted.test


@pytest.mark.parametrize("kind", [C4LM, OpenWebTextLM])
def test_an_interrupted_reading_goes_on_where_it_stood(kind: type[CorpusTask], c4: Path) -> None:
    recipe = kind.presets["smoke"]

    def read(start: tuple[int, ...], batches: int) -> list[tuple[torch.Tensor, tuple[int, ...]]]:
        given = kind(c4).splits.training(recipe, 0, start, CPU)
        return [(inputs, progress) for _, ((inputs, _), progress) in zip(range(batches), given, strict=False)]

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
        {tuple(row.tolist()) for inputs, _ in splits.measured(part, recipe, CPU) for row in inputs}
        for part in ("validation", "test")
    ]
    assert all(rows)
    assert not rows[0] & rows[1]
    assert len(rows[0] | rows[1]) == 40


def test_padding_is_not_measured_and_every_byte_of_what_is_not_cut_is(c4: Path) -> None:
    recipe = C4LM.presets["paper"]
    for inputs, answers in C4LM(c4).splits.measured("test", recipe, CPU):
        targets, sizes, documents = answers.unbind(-1)
        assert (documents == documents[:, :1]).all()
        assert torch.equal(targets[:, :-1][targets[:, :-1] >= 0], inputs[:, 1:][targets[:, :-1] >= 0])
        assert (sizes[targets == IGNORED] <= 0).all()


def test_without_other_splits_the_last_file_holds_some_documents_out(tmp_path: Path, c4: Path) -> None:
    for path in c4.glob("c4-validation*"):
        path.unlink()
    _, last = sorted(c4.glob("c4-train*"))
    last.unlink()
    (c4 / "c4-train.00001-of-00002.json.gz").write_bytes(
        gzip.compress(b"".join(b'{"text": "story %d"}\n' % number for number in range(400)))
    )
    splits = C4LM(c4).splits
    recipe = C4LM.presets["paper"]
    held_out = [sum(len(inputs) for inputs, _ in splits.measured(part, recipe, CPU)) for part in ("validation", "test")]
    assert all(5 <= documents <= 40 for documents in held_out)


def test_a_limit_on_what_is_measured_keeps_whole_documents(c4: Path) -> None:
    task = C4LM(c4)
    rows = sum(len(inputs) for inputs, _ in task.splits.measured("test", task.presets["smoke"], CPU))
    assert 1 < rows < 40


@pytest.mark.parametrize(("limit", "total"), [(7, 7), (0, None)])
def test_how_much_is_read_to_measure_on_is_told(
    limit: int, total: int | None, c4: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []

    class Told(Progress):
        def __init__(self, title: str, wanted: int | None) -> None:
            super().__init__(title, wanted)
            told.append(wanted)

        def reach(self, number: int, last: str = "") -> None:
            told.append(number)

    monkeypatch.setattr(data, "Progress", Told)
    monkeypatch.setattr(data, "BLOCK", 2)
    data._read_held_out.cache_clear()
    recipe = replace(C4LM.presets["smoke"], measured=limit)
    rows = sum(len(inputs) for inputs, _ in C4LM(c4).splits.measured("test", recipe, CPU))
    assert told[0] == total
    assert len(told) > 3
    assert told[1:] == sorted(told[1:])
    assert told[-1] == (limit or rows)


def test_other_data_or_another_tokenizer_is_another_fingerprint(c4: Path) -> None:
    prints = [C4LM(c4).splits.fingerprint, C4LM(Path(f"{c4},tokenizer=trained")).splits.fingerprint]
    with (c4 / "c4-validation.00000-of-00001.json.gz").open("ab") as file:
        file.write(gzip.compress(b'{"text": "one more"}\n'))
    prints.append(C4LM(c4).splits.fingerprint)
    assert len(set(prints)) == 3


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, r"'allenai/c4' is on the hub, which is out of reach. Offline, give a folder of its files with --data"),
        ("owner/name", r"'owner/name' is on the hub, which is out of reach"),
        ("no-such-folder", r"'no-such-folder' is neither a folder nor OWNER/NAME"),
        ("{c4}/tokenizer.json", r"must be a folder of files, got the file"),
        ("{c4}/empty", r"has nothing to train on"),
        ("{c4},tokenizer=nobody/nothing", r"'nobody/nothing' is not in the hub's cache.*tokenizer=trained"),
        ("{c4},tokenizer={c4}/c4-train.00000-of-00002.json.gz", r"cannot be read|is no tokenizer"),
    ],
)
def test_what_is_missing_is_one_line_with_what_to_do(c4: Path, data: str | None, said: str) -> None:
    (c4 / "empty").mkdir()
    task = C4LM(Path(data.format(c4=c4)) if data else None)
    with pytest.raises(UserError, match=said) as caught:
        task.fit(Run(architecture=SMALL, recipe=task.presets["smoke"], seed=0))
    assert len(str(caught.value).splitlines()) == 1


def test_a_tokenizer_larger_than_the_vocabulary_is_a_mistake(c4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(C4LM, "vocabulary", 256)
    with pytest.raises(UserError, match=r"tokens up to 299, and task 'c4-lm' is of 256"):
        C4LM(c4).splits  # noqa: B018  # a property


def test_a_column_that_is_not_there_says_what_the_files_lack(c4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in c4.glob("c4-train*"):
        path.write_bytes(gzip.compress(b'{"content": "words"}\n' * 3))
    with pytest.warns(UserWarning, match="has no text"), pytest.raises(UserError, match="there is no text in c4-train"):
        C4LM(c4).fit(Run(architecture=SMALL, recipe=C4LM.presets["smoke"], seed=0))


def test_the_hub_is_read_in_shards_as_a_folder_is(monkeypatch: pytest.MonkeyPatch, c4: Path) -> None:
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
    fitted = C4LM(Path(f"tokenizer={c4}/tokenizer.json")).fit(
        Run(architecture=SMALL, recipe=C4LM.presets["smoke"], seed=0)
    )
    assert fitted.metrics["loss"] == pytest.approx(10.37, abs=0.1)


@pytest.mark.parametrize("stop", [3, 9])
def test_a_training_that_was_stopped_goes_on_to_the_same_numbers(
    c4: Path, tmp_path: Path, stop: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = LanguageRecipe(steps=12, batch=4, accumulate=2, lr=1e-2, measured=20, reports=4, accelerator="cpu")
    monkeypatch.setattr(C4LM, "vocabulary", 300)
    told: list[tuple[int, dict[str, float]]] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        told.append((step, dict(metrics)))
        return STOP if step == stop else CONTINUE

    run = Run(architecture=SMALL, recipe=recipe, seed=0, folder=tmp_path / "kept", report=report)
    whole = C4LM(c4).fit(replace(run, folder=None, report=lambda *_: CONTINUE))
    stopped = C4LM(c4).fit(run)
    assert (stopped.steps, stopped.metrics) == told[-1]
    assert stopped.steps == stop
    assert list((tmp_path / "kept").glob("*.ckpt"))
    assert C4LM(c4).fit(replace(run, report=lambda *_: CONTINUE)) == whole
    assert not list((tmp_path / "kept").iterdir())


def test_a_training_that_was_killed_ends_with_the_numbers_it_would_have_had(
    c4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = LanguageRecipe(steps=12, batch=4, accumulate=2, lr=1e-2, measured=20, reports=4, accelerator="cpu")
    monkeypatch.setattr(C4LM, "presets", {"short": recipe})
    monkeypatch.setattr(C4LM, "vocabulary", 300)
    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    monkeypatch.setattr(checkpoint, "_SHARE", 1e9)
    told: list[tuple[int, dict[str, float]]] = []
    whole = C4LM(c4).fit(
        Run(
            architecture=SMALL,
            recipe=C4LM.presets["short"],
            seed=0,
            report=lambda step, metrics: told.append((step, dict(metrics))) or CONTINUE,
        )
    )

    def killed(step: int, metrics: object) -> Decision:
        if step == 6:
            raise MemoryError("killed")

    with pytest.raises(MemoryError):
        C4LM(c4).fit(Run(architecture=SMALL, recipe=C4LM.presets["short"], seed=0, folder=tmp_path, report=killed))
    again: list[tuple[int, dict[str, float]]] = []
    resumed = C4LM(c4).fit(
        Run(
            architecture=SMALL,
            recipe=C4LM.presets["short"],
            seed=0,
            folder=tmp_path,
            report=lambda step, metrics: again.append((step, dict(metrics))) or CONTINUE,
        )
    )
    assert resumed == whole
    assert again == told
