"""Every installed language task, walked over the registry."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
from stories_lm import StoriesLM

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from tasks.language.presets import LanguageRecipe
from tasks.language.published import C4LM
from tasks.language.rows import IGNORED
from tasks.language.stdlib_lm import StdlibLM
from tasks.language.task import LanguageTask, Place
from tasks.registry import TASKS
from tasks.run import Run
from tasks.testing import check_task

KINDS = [TASKS.load(name) for name in TASKS.names() if name.endswith("-lm")]
PRESETS = [(kind, preset) for kind in KINDS for preset in kind.presets]


def name(value: object) -> str:
    return value.name if isinstance(value, type) and issubclass(value, LanguageTask) else str(value)


@pytest.mark.parametrize(("kind", "preset"), PRESETS, ids=name)
def test_a_preset_is_one_line_with_steps_and_builds_the_network_it_is_for(
    kind: type[LanguageTask], preset: str
) -> None:
    task = kind()
    recipe = task.presets[preset]
    assert isinstance(recipe, LanguageRecipe)
    assert recipe.steps > 0
    assert len(str(recipe).splitlines()) == 1
    with torch.device("meta"):
        model = task.training_form(task.base_for(preset), recipe)
    assert sum(parameter.numel() for parameter in model.parameters()) == task.closed_form(task.base_for(preset)).params


@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_a_task_has_the_presets_that_every_task_has_and_no_base_without_one(kind: type[LanguageTask]) -> None:
    assert {"smoke", "proxy"} <= set(kind.presets)
    assert set(kind.bases) <= set(kind.presets)


@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_an_example_is_a_row_of_the_context(kind: type[LanguageTask]) -> None:
    (row,) = kind().example()
    assert row.shape == (1, kind.context)
    assert row.dtype == torch.long


def test_training_loss_is_the_mean_over_what_is_not_ignored_and_z_loss_its_own_term() -> None:
    draw = torch.Generator().manual_seed(0)
    logits, targets = torch.randn(3, 5, 7, generator=draw), torch.randint(7, (3, 5), generator=draw)
    targets[1, 2:] = IGNORED
    nats, squares, count = 0.0, 0.0, 0
    for row in range(3):
        for n in range(5):
            if targets[row, n] != IGNORED:
                log_z = math.log(sum(math.exp(score) for score in logits[row, n].tolist()))
                nats += log_z - logits[row, n, targets[row, n]].item()
                squares += log_z**2
                count += 1
    task, recipe = StdlibLM(), StdlibLM.presets["smoke"]
    assert task.loss(logits, targets, recipe).item() == pytest.approx(nats / count, rel=1e-5)
    with_z = task.loss(logits, targets, replace(recipe, z_loss=0.01))
    assert with_z.item() == pytest.approx((nats + 0.01 * squares) / count, rel=1e-5)


def test_layers_are_computed_again_where_the_recipe_says_so_with_the_same_gradients() -> None:
    task, recipe = StdlibLM(), StdlibLM.presets["smoke"]
    architecture = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=16)
    gradients = []
    for recompute in (False, True):
        torch.manual_seed(0)
        model = task.training_form(architecture, replace(recipe, recompute=recompute))
        assert model.stack.recompute is recompute
        ids = torch.arange(60).reshape(2, 30)
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("said", "text", "tokenizer"),
    [
        (None, None, None),
        ("corpus", "corpus", None),
        ("a,b/corpus", "a,b/corpus", None),
        ("corpus,tokenizer=gpt2", "corpus", "gpt2"),
        ("tokenizer=some/tokenizer.json", None, "some/tokenizer.json"),
        ("owner/name:subset,tokenizer=trained", "owner/name:subset", "trained"),
    ],
)
def test_data_is_a_place_and_a_tokenizer(said: str | None, text: str | None, tokenizer: str | None) -> None:
    assert Place.parse(Path(said) if said else None) == Place(text, tokenizer)


def test_stdlib_lm_takes_no_data() -> None:
    with pytest.raises(UserError, match="takes no --data, got 'somewhere'"):
        StdlibLM(Path("somewhere")).load()


def test_nothing_is_looked_for_before_it_is_needed() -> None:
    task = C4LM(Path("no/such/place"))
    assert task.closed_form(task.base).params > 0


def test_a_language_task_of_ones_own_keeps_the_contract_of_a_task() -> None:
    check_task(StoriesLM())


@pytest.mark.parametrize("accumulate", [1, 2])
def test_epochs_of_text_in_memory_are_as_many_rows(accumulate: int) -> None:
    task = StoriesLM()
    splits = task.splits
    rows = sum(len(inputs) for inputs, _ in splits.once(7))  # type: ignore[attr-defined]
    assert splits.examples == rows > 100
    recipe = LanguageRecipe(epochs=3, batch=8, accumulate=accumulate, lr=1e-3, measured=8, reports=1)
    fitted = task.fit(Run(architecture=task.base, recipe=recipe, seed=0))
    assert fitted.steps == 3 * (rows // 8)  # in however many parts
    assert fitted.steps == pytest.approx(3 * rows / 8, abs=3)


def test_epochs_of_text_in_files_are_refused_before_training(c4: Path) -> None:
    recipe = replace(C4LM.presets["smoke"], steps=0, epochs=1)
    with pytest.raises(UserError, match="Set steps instead, and epochs to 0") as caught:
        C4LM(c4).fit(Run(architecture=StoriesLM.base, recipe=recipe, seed=0))
    assert len(str(caught.value).splitlines()) == 1


def test_stdlib_lm_learns_something_in_a_few_steps() -> None:
    architecture = Architecture(depth=1, width=32, heads=2, head_dim=16, hidden=32)
    fitted = StdlibLM().fit(Run(architecture=architecture, recipe=StdlibLM.presets["smoke"], seed=0))
    assert fitted.metrics["loss"] < math.log(2048) - 0.1
    assert 2 < fitted.test["bits_per_byte"] < 5
