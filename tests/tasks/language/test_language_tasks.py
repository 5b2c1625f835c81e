"""All installed language tasks."""

import math
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
from stories_lm import SHORT, StoriesLM

from expect import raises
from search_spaces.architecture.architecture import Architecture
from tasks.language.language_presets import LanguageRecipe
from tasks.language.published_tasks import C4LM
from tasks.language.row_layouts import IGNORE_INDEX
from tasks.language.stdlib_lm import StdlibLM
from tasks.language.task import DataReference, LanguageTask
from tasks.registry import TASKS
from tasks.run import Run
from tasks.training.contract import check_task

LIKE = LanguageRecipe(steps=1, batch=1, lr=1.0)
KINDS = [TASKS.load(name) for name in TASKS.names() if name.endswith("-lm")]


def test_presets_have_steps_and_build_the_network_that_is_counted() -> None:
    @cache
    def parameters(kind: type[LanguageTask], base: Architecture, recipe: LanguageRecipe) -> int:
        with torch.device("meta"):
            return sum(parameter.numel() for parameter in kind().build_for_training(base, recipe).parameters())

    params, closed_forms = {}, {}
    for task in (kind() for kind in KINDS):
        assert {"smoke", "proxy"} <= set(task.presets), task.name
        assert set(task.bases) <= set(task.presets), task.name
        for preset, recipe in task.presets.items():
            assert isinstance(recipe, LanguageRecipe)
            assert recipe.steps > 0, (task.name, preset)
            assert len(str(recipe).splitlines()) == 1, (task.name, preset)
            whole, like = task.base_for(preset), replace(LIKE, initial=recipe.initial, recompute=recipe.recompute)
            base = replace(whole, depth=min(whole.depth, 2))  # each layer takes about a second
            params[task.name, preset] = parameters(type(task), base, like)
            closed_forms[task.name, preset] = task.closed_form(base).params
    assert params == closed_forms


def test_an_example_is_a_row_of_the_context() -> None:
    rows = {kind: kind().example() for kind in KINDS}
    assert {kind: [(row.shape, row.dtype) for row in part] for kind, part in rows.items()} == {
        kind: [((1, kind.context), torch.long)] for kind in KINDS
    }


def test_training_loss_matches_the_equation_with_z_loss() -> None:
    draw = torch.Generator().manual_seed(0)
    logits, targets = torch.randn(3, 5, 7, generator=draw), torch.randint(7, (3, 5), generator=draw)
    targets[1, 2:] = IGNORE_INDEX
    nats, squares, count = 0.0, 0.0, 0
    for row in range(3):
        for n in range(5):
            if targets[row, n] != IGNORE_INDEX:
                log_z = math.log(sum(math.exp(score) for score in logits[row, n].tolist()))
                nats += log_z - logits[row, n, targets[row, n]].item()
                squares += log_z**2
                count += 1
    task, recipe = StdlibLM(), StdlibLM.presets["smoke"]
    assert task.loss(logits, targets, recipe).item() == pytest.approx(nats / count, rel=1e-5)
    with_z = task.loss(logits, targets, replace(recipe, z_loss=0.01))
    assert with_z.item() == pytest.approx((nats + 0.01 * squares) / count, rel=1e-5)


def test_recomputed_layers_give_the_same_gradients() -> None:
    task, recipe = StdlibLM(), StdlibLM.presets["smoke"]
    architecture = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=16)
    gradients = []
    for recompute in (False, True):
        torch.manual_seed(0)
        model = task.build_for_training(architecture, replace(recipe, recompute=recompute))
        assert model.stack.recompute is recompute
        ids = torch.arange(60).reshape(2, 30)
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second)


def test_data_names_a_place_and_a_tokenizer() -> None:
    places = {
        None: DataReference(None, None),
        "corpus": DataReference("corpus", None),
        "a,b/corpus": DataReference("a,b/corpus", None),
        "corpus,tokenizer=gpt2": DataReference("corpus", "gpt2"),
        "tokenizer=some/tokenizer.json": DataReference(None, "some/tokenizer.json"),
        "owner/name:subset,tokenizer=trained": DataReference("owner/name:subset", "trained"),
    }
    assert {data: DataReference.parse(Path(data) if data else None) for data in places} == places


def test_stdlib_lm_takes_no_data() -> None:
    with raises("unsupported", option="--data", value="somewhere"):
        StdlibLM(Path("somewhere")).load()


def test_counting_does_not_read_the_data() -> None:
    task = C4LM(Path("no/such/place"))
    assert task.closed_form(task.base).params > 0


def test_a_custom_language_task_fulfils_the_contract() -> None:
    task = StoriesLM()
    task.presets = {**task.presets, "smoke": replace(SHORT, steps=2, batch=4)}
    check_task(task, replace(task.base, depth=1))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_an_epoch_of_text_in_memory_is_every_row_once(accumulate: int) -> None:
    task = StoriesLM()
    splits = task.splits
    rows = sum(len(inputs) for inputs, _ in splits.training_pass(7))  # type: ignore[attr-defined]
    assert splits.num_examples == rows > 100
    recipe = LanguageRecipe(epochs=3, batch=32, accumulate=accumulate, lr=1e-3, measured=8, reports=1)
    result = task.fit(Run(architecture=replace(task.base, depth=1), recipe=recipe, seed=0))
    assert result.steps == 3 * (rows // 32)  # in any number of parts
    assert result.steps == pytest.approx(3 * rows / 32, abs=3)


def test_refuses_epochs_of_text_in_files_before_training(c4: Path) -> None:
    recipe = replace(C4LM.presets["smoke"], steps=0, epochs=1)
    with raises("unsupported", option="epochs", needs="steps"):
        C4LM(c4).fit(Run(architecture=StoriesLM.base, recipe=recipe, seed=0))


def test_stdlib_lm_learns_in_a_few_steps() -> None:
    architecture = Architecture(depth=1, width=32, heads=2, head_dim=16, hidden=32)
    result = StdlibLM().fit(Run(architecture=architecture, recipe=StdlibLM.presets["smoke"], seed=0))
    assert result.metrics["loss"] < math.log(2048) - 0.1
    assert 2 < result.test["bits_per_byte"] < 5
