"""The GLUE task: start, resume, recipes and errors."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

import tasks.training.time_budget
from expect import raises
from search_spaces.architecture.checkpoint import weights_of
from tasks.base import FitResult
from tasks.glue import glue
from tasks.glue.fine_tuning import FineTuning
from tasks.glue.glue import Glue
from tasks.glue.glue_files import GLUE
from tasks.glue.recipe import GlueRecipe
from tasks.glue.sets import GlueSetData, LabelledTexts
from tasks.glue.stdlib_glue import StdlibGlue
from tasks.glue.token_rows import pack_row
from tasks.language import hub
from tasks.run import Run

TASK = StdlibGlue()
SMOKE = replace(TASK.presets["smoke"], measured=32)
BEFORE = replace(TASK.pretraining.presets["smoke"], steps=4, measured=32)
TINY = replace(TASK.base, depth=1, width=16, hidden=16, heads=2, head_dim=8)


@pytest.fixture(autouse=True)
def short_pretraining(monkeypatch: pytest.MonkeyPatch) -> None:
    pretraining = type(TASK.pretraining)
    monkeypatch.setattr(pretraining, "presets", {**pretraining.presets, "smoke": BEFORE})


def weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    return weights_of(TASK.build(TINY))


@cache
def whole() -> FitResult:
    """An uninterrupted training."""
    return TASK.fit(Run(architecture=TINY, recipe=SMOKE, seed=0))


@pytest.mark.outside
def test_given_weights_replace_the_pretraining() -> None:
    assert whole().steps == 4 + 2 * 2
    assert "pretraining_loss" in whole().extra_metrics
    start = weights()
    began = TASK.fit(Run(architecture=TINY, recipe=SMOKE, seed=0, start=start))
    assert began.steps == 4
    assert "pretraining_loss" not in began.extra_metrics
    assert began.network is not None
    end_weights = weights_of(began.network)
    assert all(torch.equal(end_weights[name], tensor) for name, tensor in start.items())
    with raises("mismatch", source="the checkpoint", shape=None):
        TASK.fit(Run(architecture=replace(TINY, depth=2), recipe=SMOKE, seed=0, start=start))


def test_resume_between_sets_gives_the_same_numbers(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def until(step: int) -> Callable[[int, int], None]:
        def callback(number: int, steps: int) -> None:
            assert steps == 8
            if number == step:
                raise Enough

        return callback

    for step in (7, 8):  # in the second set, twice
        with pytest.raises(Enough):
            TASK.fit(Run(architecture=TINY, recipe=SMOKE, seed=0, folder=tmp_path, on_step=until(step)))
    steps: list[int] = []
    result = TASK.fit(
        Run(architecture=TINY, recipe=SMOKE, seed=0, folder=tmp_path, on_step=lambda step, _: steps.append(step))
    )
    assert result == whole()
    assert min(steps) >= 7
    assert not list(tmp_path.iterdir())


def test_progress_of_a_pretraining_in_hours_includes_the_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(0, 0.25)  # seconds per step: 12 steps in three seconds
    monkeypatch.setattr(tasks.training.time_budget, "perf_counter", lambda: next(clock))
    recipe = replace(TASK.presets["smoke"], pretraining="hours")
    short = replace(BEFORE, steps=0, hours=3 / 3600, reports=1)
    monkeypatch.setattr(type(TASK.pretraining), "presets", {"hours": short})
    progress: list[tuple[int, int]] = []
    result = TASK.fit(Run(architecture=TINY, recipe=recipe, seed=0, on_step=lambda *at: progress.append(at)))
    assert result.steps == 12 + 4
    assert [step for step, _ in progress] == [*range(1, 17)]
    assert {whole for _, whole in progress} == {16}


def test_fine_tuning_starts_from_the_encoder_and_drops_out_in_training_only() -> None:
    start, reference = weights(), TASK.sets["reference"]
    tuning = FineTuning(TASK.pretraining, start, reference, TASK.splits_of("reference"))
    judge = tuning.build_for_training(TINY, SMOKE)
    encoder_weights = weights_of(judge.encoder)  # type: ignore[arg-type]
    assert all(torch.equal(encoder_weights[name], tensor) for name, tensor in start.items())
    ids, real = torch.randint(2000, (2, 9)), torch.arange(9) < torch.tensor([[9], [4]])
    assert not torch.equal(judge(ids, real), judge(ids, real))
    judge.eval()
    assert torch.allclose(judge(ids, real)[1:], judge(ids[1:, :4], real[1:, :4]), atol=1e-6)
    features = judge.encoder.features(ids[:1], real[:1])[0]  # type: ignore[operator, union-attr]
    logits = judge.answer(torch.tanh(judge.pool(sum(features) / 9)))  # type: ignore[operator]
    assert torch.allclose(judge(ids, real)[0], logits, atol=1e-5)
    other = FineTuning(TASK.pretraining, {**start}, TASK.sets["word_order"], TASK.splits_of("reference"))
    assert other.fingerprint(SMOKE) != tuning.fingerprint(SMOKE)
    other_weights = {name: tensor + 1 for name, tensor in start.items()}
    other_tuning = FineTuning(TASK.pretraining, other_weights, reference, TASK.splits_of("reference"))
    assert other_tuning.fingerprint(SMOKE) != tuning.fingerprint(SMOKE)


def test_regression_loss_is_the_mean_square() -> None:
    tuning = FineTuning(TASK.pretraining, weights(), GLUE["stsb"], TASK.splits_of("reference"))
    outputs, answers = [0.5, 3.0, -1.0], [1.0, 4.5, 0.0]
    loss = tuning.loss(torch.tensor(outputs)[:, None], {"answer": torch.tensor(answers, dtype=torch.float64)}, SMOKE)
    squares = [(output - answer) ** 2 for output, answer in zip(outputs, answers, strict=True)]
    assert loss.item() == pytest.approx(sum(squares) / 3)


def test_fingerprint_depends_on_the_pretraining(monkeypatch: pytest.MonkeyPatch) -> None:
    fingerprint, before = TASK.fingerprint(SMOKE), type(TASK.pretraining)
    longer = replace(BEFORE, steps=5)
    monkeypatch.setattr(before, "presets", {**before.presets, "smoke": longer})
    assert TASK.fingerprint(SMOKE) != fingerprint
    monkeypatch.setattr(before, "presets", {**before.presets, "smoke": BEFORE})
    assert TASK.fingerprint(SMOKE) == fingerprint
    monkeypatch.setattr(before, "version", before.version + 1)
    assert TASK.fingerprint(SMOKE) != fingerprint


def test_baseline_is_the_majority_class() -> None:
    baseline = TASK.baselines(SMOKE)["majority"]
    whole = TASK.baselines(replace(SMOKE, measured=0))["majority"]
    for name, splits in ((name, TASK.splits_of(name)) for name in TASK.sets):
        learned = splits.train[1]["answer"].tolist()
        usual = max({0.0, 1.0}, key=learned.count)
        for prefix, part in (("", splits.validation), ("test_", splits.test)):
            answers = part[1]["answer"].tolist()
            right = answers.count(usual) / len(answers)
            assert whole[prefix + name] == pytest.approx(0 if name == "word_order" else right)
    assert whole["test_score"] == pytest.approx((whole["test_word_order"] + whole["test_reference"]) / 2)
    assert baseline["test_reference_se"] > whole["test_reference_se"] > 0


def test_baseline_of_a_regression_set_is_the_mean(glue_data: Path) -> None:
    task = Glue(glue_data)
    recipe = replace(task.presets["smoke"], sets=("stsb",))
    assert task.baselines(recipe)["majority"]["test_stsb"] == 0


def test_asks_for_a_text_to_pretrain_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: False)
    with raises("unavailable", part="pretraining"):
        Glue(tmp_path).prepare()


def test_truncates_the_longest_sentence_first() -> None:
    short, long = np.full(3, 7, dtype=np.int32), np.full(20, 8, dtype=np.int32)
    assert pack_row([short], 0, 10).tolist() == [7, 7, 7, 0]
    assert pack_row([short, long], 0, 12).tolist() == [7, 7, 7, 0, *[8] * 7, 0]
    assert pack_row([long, long], 0, 12).tolist() == [*[8] * 5, 0, *[8] * 5, 0]


def test_a_recipe_can_select_sets() -> None:
    recipe = replace(SMOKE, sets=("word_order",))
    assert [metric.name for metric in TASK.metrics_for(recipe)] == ["score", "word_order"]
    assert TASK.fingerprint(recipe) != TASK.fingerprint(SMOKE)
    result = TASK.fit(Run(architecture=TINY, recipe=recipe, seed=0, start=weights()))
    assert set(result.test) == {"score", "score_se", "word_order", "word_order_se"}
    with raises("unknown-name", option="set", value="wordorder", nearest="word_order"):
        TASK.fingerprint(replace(SMOKE, sets=("wordorder",)))
    with raises("unknown-name", option="preset", value="prox", nearest="proxy"):
        TASK.fingerprint(replace(SMOKE, pretraining="prox"))
    with raises("unsupported", option="parametrization", value="mup(base=64)"):
        GlueRecipe(epochs=1, batch=2, lr=1e-3, pretraining="proxy", parametrization="mup(base=64)")
    with raises("unsupported", option="hours", value=0.5):
        GlueRecipe(hours=0.5, batch=2, lr=1e-3, pretraining="proxy")


def test_data_names_the_folder_of_sets_and_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from_hub = GlueSetData(LabelledTexts([], []), ())
    monkeypatch.setattr(glue, "hub_set", lambda of: from_hub)
    read = {
        "a": (Path("a"), None),
        "a,pretraining=b": (Path("a"), "b"),
        "a,pretraining=b,tokenizer=c": (Path("a"), "b,tokenizer=c"),
        "a,tokenizer=c": (Path("a"), "tokenizer=c"),
        "a,tokenizer=c,pretraining=b": (Path("a"), "b,tokenizer=c"),
        "pretraining=b": (None, "b"),
        "tokenizer=c": (None, "tokenizer=c"),
    }
    for data, (sets, text) in read.items():
        task = Glue(Path(data))
        assert task.pretraining.data == (None if text is None else Path(text)), data
        if sets is None:
            assert task.load_texts("cola") is from_hub, data
        else:
            with raises("missing-data", option="--data", path=str(sets)):
                task.load_texts("cola")


def test_refuses_a_misspelt_part_of_data() -> None:
    with raises("unknown-name", value="pretrainin", nearest="pretraining"):
        Glue(Path("a,pretrainin=b,tokenizer=c")).load_texts("cola")


def test_empty_selection_means_all_sets() -> None:
    assert {*TASK.sets_for(SMOKE)} == {"word_order", "reference"}
    names = ("reference", "word_order")
    with raises("conflict", option="sets", value=names):
        TASK.sets_for(replace(SMOKE, sets=names))


def test_starts_from_its_own_checkpoints_and_those_of_its_pretraining() -> None:
    assert TASK.start_tasks() == {"stdlib-glue": 2, "stdlib-mlm": 1}
    assert Glue().start_tasks() == {"glue": 1, "pile-mlm": 1}
