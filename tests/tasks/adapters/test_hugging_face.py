"""Models with Hugging Face's convention, including transformers' own."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from expect import raises
from search_spaces.architecture.architecture import Architecture
from tasks.adapters.hugging_face import EvalPrediction, HuggingFaceModelWrapper, HuggingFaceRecipe, HuggingFaceTask
from tasks.base import FitResult, Metric
from tasks.data.batches import concatenate
from tasks.data.example_splits import Examples, ExampleSplits, stack_examples
from tasks.run import Run
from tasks.training.contract import check_task

SMOKE = HuggingFaceRecipe(steps=6, batch=10, lr=0.01, reports=3)


def rows(examples: int, seed: int) -> list[dict[str, Any]]:
    """Rows of 6 ids and whether the first is large, with columns that the model ignores."""
    ids = torch.randint(0, 12, (examples, 6), generator=torch.Generator().manual_seed(seed))
    return [{"input_ids": row, "label": int(row[0] > 5), "text": f"{row}"} for row in ids]


class ByDuck(nn.Module):
    """Follows the convention without transformers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding, self.dropout, self.head = nn.Embedding(12, width), nn.Dropout(0.1), nn.Linear(6 * width, 2)

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> Any:
        """Ids [B, 6] to an object with loss and logits."""
        logits = self.head(self.dropout(self.embedding(input_ids)).flatten(1))
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return SimpleNamespace(loss=loss, logits=logits, past_key_values=object())


class Ducks(HuggingFaceTask):
    name = "ducks"
    version = 1
    metrics = (Metric("accuracy", "share", "max"), Metric("loss", "nats", "min"))
    base = Architecture(depth=1, width=4, hidden=4)
    presets: Mapping[str, Any] = {"smoke": SMOKE, "proxy": SMOKE}

    def model(self, architecture: Architecture) -> nn.Module:
        return ByDuck(architecture.width * architecture.depth)

    def datasets(self) -> tuple[Examples, Examples, Examples]:
        return rows(100, 1), rows(100, 2), rows(95, 3)

    def compute_metrics(self, prediction: EvalPrediction) -> Mapping[str, float]:
        """Accuracy, and a metric that the task does not declare."""
        logits, labels = prediction
        return {"accuracy": (logits.argmax(-1) == labels).mean(), "examples": len(labels)}


def fit(task: HuggingFaceTask, recipe: Any = SMOKE) -> FitResult:
    return task.fit(Run(architecture=task.base, recipe=recipe, seed=0))


def test_a_model_that_follows_the_convention_keeps_the_contract() -> None:
    check_task(Ducks())


def test_a_model_of_transformers_keeps_the_contract() -> None:
    transformers = pytest.importorskip("transformers")

    class Berts(Ducks):
        base = Architecture(depth=1, width=8, heads=2, head_dim=4, hidden=8)

        def model(self, architecture: Architecture) -> nn.Module:
            return transformers.BertForSequenceClassification(  # type: ignore[no-any-return]
                transformers.BertConfig(
                    vocab_size=12,
                    max_position_embeddings=6,
                    hidden_size=architecture.width,
                    num_hidden_layers=architecture.depth,
                    num_attention_heads=architecture.heads,
                    intermediate_size=architecture.hidden,
                )
            )

        def collate(self, examples: list[Any]) -> Mapping[str, Any]:
            return transformers.default_data_collator([dict(example) for example in examples])  # type: ignore[no-any-return]

    check_task(Berts())


def test_a_model_that_gives_a_cache_is_trained_and_counted() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=12, n_positions=6, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    network = HuggingFaceModelWrapper(transformers.GPT2LMHeadModel(config), ("input_ids",))
    ids = torch.zeros(2, 6, dtype=torch.long)
    assert set(network(ids)) == {"logits"}
    assert set(network(input_ids=ids, labels=ids)) == {"loss", "logits"}


def test_a_training_learns() -> None:
    assert fit(Ducks(), HuggingFaceRecipe(epochs=20, batch=10, lr=0.02)).metrics["accuracy"] > 0.9


def test_metrics_have_standard_errors() -> None:
    result = fit(Ducks())
    share = result.metrics["accuracy"]
    assert set(result.metrics) == {"accuracy", "accuracy_se", "loss", "loss_se"} == set(result.test)
    assert result.metrics["accuracy_se"] == pytest.approx((share * (1 - share) / 100) ** 0.5, rel=0.5)


def test_the_standard_error_of_the_loss_is_that_of_its_examples() -> None:
    task = Ducks()
    draws, errors = np.random.default_rng(0).normal(size=(100, 12, 10)), []
    for draw in draws:
        loss = torch.tensor(draw).mean(dim=1).repeat_interleave(10)
        opens = torch.arange(120) % 10 == 0
        metrics = task.summary({"loss": loss, "opens": opens, "prediction 0": torch.zeros(120, 2), "label 0": opens})
        assert metrics["loss"] == pytest.approx(draw.mean())
        errors.append(metrics["loss_se"])
    assert np.mean(np.square(errors)) == pytest.approx(1 / 120, rel=0.1)


def test_the_loss_of_one_batch_has_no_standard_error() -> None:
    result = fit(Ducks(), HuggingFaceRecipe(steps=2, batch=100))
    assert "loss_se" not in result.metrics
    assert "accuracy_se" in result.metrics


def test_the_loss_alone_keeps_no_predictions() -> None:
    class Plain(Ducks):
        metrics = (Metric("loss", "nats", "min"),)
        compute_metrics = HuggingFaceTask.compute_metrics

    outputs = {"loss": torch.tensor(1.0), "logits": torch.zeros(3, 2)}
    assert set(Plain().measure(outputs, {"labels": torch.zeros(3)})) == {"loss", "opens"}
    assert fit(Plain()).metrics["loss"] > 0


def test_logits_may_be_preprocessed_for_metrics() -> None:
    class Guesses(Ducks):
        def preprocess_logits_for_metrics(self, logits: Any, labels: Any) -> Any:
            return logits.argmax(dim=-1)

        def compute_metrics(self, prediction: EvalPrediction) -> Mapping[str, float]:
            return {"accuracy": (prediction.predictions == prediction.label_ids).mean()}

    assert fit(Guesses()) == fit(Ducks())


def test_texts_of_different_lengths_are_padded() -> None:
    rows_together = concatenate([torch.zeros(2, 3), torch.ones(1, 5)])
    assert rows_together.tolist() == [[0, 0, 0, -100, -100], [0, 0, 0, -100, -100], [1, 1, 1, 1, 1]]
    assert concatenate([torch.zeros(2), torch.ones(1)]).tolist() == [0, 0, 1]


def test_random_collators_depend_on_seed_and_batch_alone() -> None:
    def masked(examples: Any) -> dict[str, Tensor]:
        batch = stack_examples(examples)
        return {**batch, "input_ids": batch["input_ids"] * (torch.rand(batch["input_ids"].shape) > 0.5)}

    columns = ("input_ids", "label")
    splits = ExampleSplits(rows(40, 1), rows(40, 2), rows(40, 3), masked, columns)
    cpu = torch.device("cpu")

    def some(seed: int, start: tuple[int, ...], number: int) -> list[Tensor]:
        batches = splits.training_batches(SMOKE, seed, start, cpu)
        return [next(batches)[0][0]["input_ids"] for _ in range(number)]

    torch.manual_seed(1)
    first = torch.cat(some(0, (), 7))
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert torch.equal(torch.cat([*some(0, (), 3), *some(0, (3,), 4)]), first)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(torch.cat(some(1, (), 7)), first)
    first_pass, second_pass = (
        [inputs["input_ids"] for (inputs, _) in splits.evaluation_batches("test", SMOKE, cpu)] for _ in range(2)
    )
    assert torch.equal(torch.cat(first_pass), torch.cat(second_pass))


def test_errors_of_models_and_data_are_refused() -> None:
    class NoLabels(Ducks):
        label_names = ("start",)

        def datasets(self) -> tuple[Examples, Examples, Examples]:
            parts = super().datasets()
            return tuple([{"input_ids": row["input_ids"]} for row in part] for part in parts)  # type: ignore[return-value, attr-defined]

    class WrongMetric(Ducks):
        metrics = (Metric("f1", "share", "max"),)

    class Pixels(Ducks):
        input_names = ("pixel_values",)

    class Texts(Ducks):
        def collate(self, examples: list[Any]) -> Mapping[str, Any]:
            return {**stack_examples(examples), "text": ["a"]}

    with raises("bad-plugin", task="ducks", option="label_names", value=()):
        fit(NoLabels())
    choices = ("loss", "accuracy", "examples")
    with raises("bad-plugin", task="ducks", option="metrics", value=("f1",), choices=choices):
        fit(WrongMetric())
    columns = ("input_ids", "labels")
    with raises("bad-plugin", task="ducks", option="input_names", value="pixel_values", choices=columns):
        Pixels().example()
    with raises("bad-plugin", option="text", type="list"):
        fit(Texts())
    with raises("unsupported", option="topology", value="ancre"):
        Ducks().build(Ducks.base.with_fields({"topology": "ancre"}))
    with raises("unsupported", option="label_smoothing", value=0.1):
        HuggingFaceRecipe(steps=1, label_smoothing=0.1)


def test_fingerprint_depends_on_the_data() -> None:
    class OtherData(Ducks):
        def datasets(self) -> tuple[Examples, Examples, Examples]:
            return rows(100, 4), rows(100, 2), rows(95, 3)

    assert OtherData().fingerprint(SMOKE) != Ducks().fingerprint(SMOKE) == Ducks().fingerprint(SMOKE)
