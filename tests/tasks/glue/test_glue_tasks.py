"""GLUE as a task: what it begins with, goes on from and refuses."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

import tasks.clock
from search_spaces.checkpoint import weights_of
from search_spaces.errors import UserError
from tasks.glue.files import GLUE
from tasks.glue.fine_tuning import FineTuning
from tasks.glue.glue import Glue
from tasks.glue.recipe import GlueRecipe
from tasks.glue.rows import row_of
from tasks.glue.stdlib_glue import StdlibGlue
from tasks.run import Run

TASK = StdlibGlue()
SMOKE = TASK.presets["smoke"]
TINY = replace(TASK.base, depth=1, width=16, hidden=16, heads=2, head_dim=8)


def weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    return weights_of(TASK.build(TINY))


def test_given_weights_take_the_place_of_the_pre_training() -> None:
    own = TASK.fit(Run(architecture=TINY, recipe=SMOKE, seed=0))
    assert own.steps == 24
    assert "pretraining_loss" in own.measures
    given = weights()
    began = TASK.fit(Run(architecture=TINY, recipe=SMOKE, seed=0, start=given))
    assert began.steps == 4
    assert "pretraining_loss" not in began.measures
    assert began.network is not None
    kept = weights_of(began.network)
    assert all(torch.equal(kept[name], tensor) for name, tensor in given.items())
    with pytest.raises(UserError, match="the checkpoint"):
        TASK.fit(Run(architecture=replace(TINY, depth=2), recipe=SMOKE, seed=0, start=given))


def test_one_that_was_interrupted_between_sets_ends_with_the_same_numbers(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def until(step: int) -> Callable[[int, int], None]:
        def advanced(number: int, steps: int) -> None:
            assert steps == 24
            if number == step:
                raise Enough

        return advanced

    whole = TASK.fit(Run(architecture=TINY, recipe=SMOKE, seed=0))
    for step in (23, 24):  # in the second set, twice
        with pytest.raises(Enough):
            TASK.fit(Run(architecture=TINY, recipe=SMOKE, seed=0, folder=tmp_path, advanced=until(step)))
    steps: list[int] = []
    again = TASK.fit(
        Run(architecture=TINY, recipe=SMOKE, seed=0, folder=tmp_path, advanced=lambda step, _: steps.append(step))
    )
    assert again == whole
    assert min(steps) >= 23
    assert not list(tmp_path.iterdir())


def test_a_pre_training_in_hours_tells_how_far_it_is_with_the_sets_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(0, 0.25)  # seconds: a step takes as much, and 12 of them are the three seconds
    monkeypatch.setattr(tasks.clock, "perf_counter", lambda: next(clock))
    recipe = replace(TASK.presets["smoke"], pretraining="hours")
    short = replace(TASK.pretraining.presets["smoke"], steps=0, hours=3 / 3600, reports=1)
    monkeypatch.setattr(type(TASK.pretraining), "presets", {"hours": short})
    told: list[tuple[int, int]] = []
    fitted = TASK.fit(Run(architecture=TINY, recipe=recipe, seed=0, advanced=lambda *at: told.append(at)))
    assert fitted.steps == 12 + 4
    assert [step for step, _ in told] == [*range(1, 17)]
    assert {whole for _, whole in told} == {16}


def test_a_set_begins_with_the_encoders_weights_and_drops_only_while_training() -> None:
    given, one = weights(), TASK.sets["reference"]
    tuning = FineTuning(TASK.pretraining, given, one, TASK.splits_of("reference"))
    judge = tuning.training_form(TINY, SMOKE)
    own = weights_of(judge.encoder)  # type: ignore[arg-type]
    assert all(torch.equal(own[name], tensor) for name, tensor in given.items())
    ids, real = torch.randint(2000, (2, 9)), torch.arange(9) < torch.tensor([[9], [4]])
    assert not torch.equal(judge(ids, real), judge(ids, real))
    judge.eval()
    assert torch.allclose(judge(ids, real)[1:], judge(ids[1:, :4], real[1:, :4]), atol=1e-6)
    features = judge.encoder.features(ids[:1], real[:1])[0]  # type: ignore[operator, union-attr]
    said = judge.answer(torch.tanh(judge.pool(sum(features) / 9)))  # type: ignore[operator]
    assert torch.allclose(judge(ids, real)[0], said, atol=1e-5)
    other = FineTuning(TASK.pretraining, {**given}, TASK.sets["word_order"], TASK.splits_of("reference"))
    assert other.fingerprint(SMOKE) != tuning.fingerprint(SMOKE)
    changed = {name: tensor + 1 for name, tensor in given.items()}
    of_others = FineTuning(TASK.pretraining, changed, one, TASK.splits_of("reference"))
    assert of_others.fingerprint(SMOKE) != tuning.fingerprint(SMOKE)


def test_an_answer_that_is_a_number_is_learnt_by_its_square() -> None:
    tuning = FineTuning(TASK.pretraining, weights(), GLUE["stsb"], TASK.splits_of("reference"))
    said, answers = [0.5, 3.0, -1.0], [1.0, 4.5, 0.0]
    loss = tuning.loss(torch.tensor(said)[:, None], {"answer": torch.tensor(answers, dtype=torch.float64)}, SMOKE)
    squares = [(one - other) ** 2 for one, other in zip(said, answers, strict=True)]
    assert loss.item() == pytest.approx(sum(squares) / 3)


def test_how_the_network_was_trained_before_is_part_of_what_a_run_is(monkeypatch: pytest.MonkeyPatch) -> None:
    own, before = TASK.fingerprint(SMOKE), type(TASK.pretraining)
    longer = replace(before.presets["smoke"], steps=21)
    monkeypatch.setattr(before, "presets", {**before.presets, "smoke": longer})
    assert TASK.fingerprint(SMOKE) != own
    monkeypatch.undo()
    assert TASK.fingerprint(SMOKE) == own
    monkeypatch.setattr(before, "version", before.version + 1)
    assert TASK.fingerprint(SMOKE) != own


def test_what_answers_alike_whatever_it_reads_is_the_baseline() -> None:
    found = TASK.baselines(SMOKE)["majority"]
    whole = TASK.baselines(replace(SMOKE, measured=0))["majority"]
    for name, splits in ((name, TASK.splits_of(name)) for name in TASK.sets):
        learnt = splits.train[1]["answer"].tolist()
        usual = max({0.0, 1.0}, key=learnt.count)
        for prefix, part in (("", splits.validation), ("test_", splits.test)):
            answers = part[1]["answer"].tolist()
            right = answers.count(usual) / len(answers)
            assert whole[prefix + name] == pytest.approx(0 if name == "word_order" else right)
    assert whole["test_score"] == pytest.approx((whole["test_word_order"] + whole["test_reference"]) / 2)
    assert found["test_reference_se"] > whole["test_reference_se"] > 0


def test_of_numbers_the_baseline_is_their_mean(glue_data: Path) -> None:
    task = Glue(glue_data)
    recipe = replace(task.presets["smoke"], sets=("stsb",))
    assert task.baselines(recipe)["majority"]["test_stsb"] == 0


def test_without_a_network_a_text_to_train_on_before_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"pre-training that is --data FOLDER,pretraining=PLACE"):
        Glue(tmp_path).prepare()


def test_the_longest_sentence_is_cut_first() -> None:
    short, long = np.full(3, 7, dtype=np.int32), np.full(20, 8, dtype=np.int32)
    assert row_of([short], 0, 10).tolist() == [7, 7, 7, 0]
    assert row_of([short, long], 0, 12).tolist() == [7, 7, 7, 0, *[8] * 7, 0]
    assert row_of([long, long], 0, 12).tolist() == [*[8] * 5, 0, *[8] * 5, 0]


def test_a_recipe_may_ask_for_some_of_the_sets() -> None:
    one = replace(SMOKE, sets=("word_order",))
    assert [metric.name for metric in TASK.metrics_for(one)] == ["score", "word_order"]
    assert TASK.fingerprint(one) != TASK.fingerprint(SMOKE)
    fitted = TASK.fit(Run(architecture=TINY, recipe=one, seed=0, start=weights()))
    assert set(fitted.test) == {"score", "score_se", "word_order", "word_order_se"}
    with pytest.raises(UserError, match="Did you mean 'word_order'"):
        TASK.fingerprint(replace(SMOKE, sets=("wordorder",)))
    with pytest.raises(UserError, match="Did you mean 'proxy'"):
        TASK.fingerprint(replace(SMOKE, pretraining="prox"))
    with pytest.raises(UserError, match="parametrization must be standard"):
        GlueRecipe(epochs=1, batch=2, lr=1e-3, pretraining="proxy", parametrization="mup(base=64)")
    with pytest.raises(UserError, match=r"sets are fine-tuned in epochs or steps, got 0\.5 hours\. Set epochs"):
        GlueRecipe(hours=0.5, batch=2, lr=1e-3, pretraining="proxy")


@pytest.mark.parametrize(
    ("data", "sets", "text"),
    [
        ("a", "a", None),
        ("a,pretraining=b", "a", "b"),
        ("a,pretraining=b,tokenizer=c", "a", "b,tokenizer=c"),
        ("a,tokenizer=c", "a", "tokenizer=c"),
        ("a,tokenizer=c,pretraining=b", "a", "b,tokenizer=c"),
        ("pretraining=b", "", "b"),
        ("tokenizer=c", "", "tokenizer=c"),
    ],
)
def test_data_names_the_sets_and_the_text(data: str, sets: str, text: str | None) -> None:
    task = Glue(Path(data))
    assert task._place()[0] == sets
    assert task.pretraining.data == (None if text is None else Path(text))


def test_a_misspelt_part_of_data_is_told() -> None:
    with pytest.raises(UserError, match=r"unknown part .* 'pretrainin'. Did you mean 'pretraining'"):
        Glue(Path("a,pretrainin=b,tokenizer=c"))._place()


def test_all_sets_are_asked_for_by_none() -> None:
    assert {*TASK.asked(SMOKE)} == {"word_order", "reference"}
    with pytest.raises(UserError, match="sets names all of them, which is what none means"):
        TASK.asked(replace(SMOKE, sets=("reference", "word_order")))


def test_it_begins_with_its_own_networks_and_with_those_of_its_pre_training() -> None:
    assert TASK.starts() == {"stdlib-glue": 2, "stdlib-mlm": 1}
    assert Glue().starts() == {"glue": 1, "pile-mlm": 1}
