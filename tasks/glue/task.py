"""The base class of GLUE tasks: one pre-training on masked text, then fine-tuning on each set."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from torch import nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import load_weights, weights_of
from search_spaces.support.count import Count
from search_spaces.support.errors import UserError, unknown_name_error
from search_spaces.support.rank import rank_info
from tasks.base import Diverged, FitResult, Metric, Task
from tasks.data.batches import Inputs
from tasks.data.splits import Part, TensorSplits
from tasks.glue.fine_tuning import FineTuning
from tasks.glue.recipe import GlueRecipe
from tasks.glue.sets import GlueSet, GlueSetData
from tasks.glue.summary import component_scores, majority, mean_over_sets
from tasks.glue.token_rows import splits_of
from tasks.language.corpus import Corpus
from tasks.language.masked import MaskedTask
from tasks.language.tokenizer import Tokenizer
from tasks.recipes.settings import recipe_text
from tasks.run import Run, always_continue
from tasks.training.checkpoint import Checkpoint
from tasks.training.loop import checkpoint_for, isolated_rng


class GlueTask(Task):
    """A task that pre-trains on masked text and then fine-tunes on each set separately.

    Network, costs and saved weights are those of the pre-training, which a run with start weights skips. `score` is the
    mean over the sets. Development sets are the test split; a tenth of train, at most 1,000 examples, is validation.
    There are no intermediate reports, so no early stopping.

    Attributes:
        sets: Name -> set.
        pretraining: The task of the pre-training.
    """

    sets: ClassVar[Mapping[str, GlueSet]]
    presets: ClassVar[Mapping[str, GlueRecipe]]
    pretraining: MaskedTask
    reports_intermediate = False
    unused_with_start = ("pretraining",)

    @abstractmethod
    def load_texts(self, name: str) -> GlueSetData:
        """Return the texts of a set. Raises UserError if they are missing."""

    def encoding(self) -> str:
        return self.read_text()[1].fingerprint

    def start_tasks(self) -> Mapping[str, int]:
        """Return this task, whose networks are those of its pre-training, and the pre-training's task."""
        return {**super().start_tasks(), self.pretraining.name: self.pretraining.version}

    def metrics_for(self, recipe: GlueRecipe) -> tuple[Metric, ...]:
        """Return the mean over the recipe's sets, and the metric of each."""
        sets = self.sets_for(recipe)
        return tuple(metric for metric in self.metrics if metric.name in ("score", *sets))

    def sets_for(self, recipe: GlueRecipe) -> Mapping[str, GlueSet]:
        """Return the sets of a recipe. Raises UserError if it names an unknown set, or all sets."""
        if {*recipe.sets} == {*self.sets}:
            raise UserError(
                "conflict",
                "sets must not name all sets, which is the default. Leave it out.",
                option="sets",
                value=recipe.sets,
            )
        for name in recipe.sets:
            if name not in self.sets:
                raise unknown_name_error("set", name, self.sets, of=f"task {self.name!r}")
        return {name: glue_set for name, glue_set in self.sets.items() if name in recipe.sets or not recipe.sets}

    def prepare(self) -> None:
        self.read_text()
        self.pretraining.prepare()

    def read_text(self) -> tuple[Corpus, Tokenizer]:
        """Return the pre-training's text and tokenizer. Raises UserError if they are missing."""
        return self.pretraining.cached_text

    def build(self, architecture: Architecture) -> nn.Module:
        return self.pretraining.build(architecture)

    def example(self) -> Inputs:
        return self.pretraining.example()

    def inputs(self, recipe: GlueRecipe) -> Inputs:
        return self.pretraining.inputs(self.pretraining_recipe(recipe))

    def closed_form(self, architecture: Architecture) -> Count | None:
        """Return the count of the encoder with the masked-language head on all tokens."""
        return self.pretraining.closed_form(architecture)

    def fingerprint(self, recipe: GlueRecipe) -> str:
        """Return hex digits of the pre-training's text and recipe, and of the sets."""
        before, preset = self.pretraining, self.pretraining_recipe(recipe)
        pretraining_text = f"{before.name} {before.version} {recipe_text(preset, ())} {before.fingerprint(preset)}"
        sets = [f"{glue_set!r} {self.splits_of(name).fingerprint}" for name, glue_set in self.sets_for(recipe).items()]
        return hashlib.sha256("\n".join((pretraining_text, *sets)).encode()).hexdigest()

    def training_step(self, run: Run) -> Callable[[], None]:
        """Return a step of fine-tuning on the first set: on GLUE, fine-tuning takes longer than the pre-training."""
        with isolated_rng(run):
            weights = weights_of(self.build(run.architecture))
        [(name, glue_set), *_] = self.sets_for(run.recipe).items()
        tuning = FineTuning(self.pretraining, weights, glue_set, self.splits_of(name))
        return tuning.training_step(replace(run, start=None))

    def baselines(self, recipe: GlueRecipe) -> Mapping[str, Mapping[str, float]]:
        """Return the metrics of the most frequent training answer, or of the mean answer for regression."""
        columns: dict[str, float] = {}
        parts: Mapping[str, Part] = {"": "validation", "test_": "test"}
        for prefix, part in parts.items():
            by_set = {
                name: majority(glue_set, self.splits_of(name), part, recipe)
                for name, glue_set in self.sets_for(recipe).items()
            }
            columns |= {prefix + name: value for name, value in mean_over_sets(by_set).items()}
        return {"majority": columns}

    def fit(self, run: Run) -> FitResult:
        """Pre-train unless start weights are given, then fine-tune on each set. See Task.fit."""
        if rank_info().world_size > 1:
            raise UserError(
                "unsupported",
                f"task {self.name!r} trains in one process, got {rank_info().world_size}. Start it without torchrun.",
                task=self.name,
                processes=rank_info().world_size,
            )
        checkpoint = checkpoint_for(self, run)
        try:
            fit_result = self._fit(run, checkpoint)
        except Diverged:
            checkpoint.clear()
            raise
        checkpoint.clear()
        return fit_result

    def pretraining_recipe(self, recipe: GlueRecipe) -> Any:
        """Return the recipe of the pre-training. Raises UserError if its task lacks the preset."""
        presets = self.pretraining.presets
        if recipe.pretraining not in presets:
            raise unknown_name_error("preset", recipe.pretraining, presets, of=f"task {self.pretraining.name!r}")
        return presets[recipe.pretraining]

    def splits_of(self, name: str) -> TensorSplits:
        """Return a set as rows of tokens, read once."""
        if name not in self._splits:
            self._splits[name] = splits_of(name, self.load_texts(name), self.read_text()[1], self.pretraining.context)
        return self._splits[name]

    @cached_property
    def _splits(self) -> dict[str, TensorSplits]:
        return {}

    def _fit(self, run: Run, checkpoint: Checkpoint) -> FitResult:
        """Run each stage that is not finished, and save its results in the checkpoint."""
        state = checkpoint.load()
        if state is None:
            state = self._pretrain(run)
            checkpoint.save(state)
        by_set, sets = state["found"], self.sets_for(run.recipe)
        for name, glue_set in sets.items():
            if name not in by_set:
                tuning = FineTuning(self.pretraining, state["weights"], glue_set, self.splits_of(name))
                after = sets.keys() - by_set.keys() - {name}
                fit_result = tuning.fit(self._stage(run, run.recipe, state["steps"], after))
                by_set[name] = {"validation": dict(fit_result.metrics), "test": dict(fit_result.test)}
                state["steps"] += fit_result.steps
                checkpoint.save(state)
        validation, test = ({name: by_set[name][part] for name in by_set} for part in ("validation", "test"))
        parts = component_scores(validation) | {f"test_{name}": value for name, value in component_scores(test).items()}
        with isolated_rng(run):
            network = self.build(run.architecture)
        load_weights(network, state["weights"], "the pre-training")
        return FitResult(
            steps=state["steps"],
            metrics=mean_over_sets(validation),
            test=mean_over_sets(test),
            extra_metrics=state["extra_metrics"] | parts,
            network=network,
            network_steps=state["pretraining_steps"],
        )

    def _pretrain(self, run: Run) -> dict[str, Any]:
        """Return the state after the pre-training: weights, extra metrics and steps."""
        if run.start is not None:
            with isolated_rng(run):
                load_weights(self.build(run.architecture), run.start, "the checkpoint")
            return {"weights": dict(run.start), "extra_metrics": {}, "pretraining_steps": 0, "steps": 0, "found": {}}
        fit_result = self.pretraining.fit(
            self._stage(run, self.pretraining_recipe(run.recipe), 0, self.sets_for(run.recipe))
        )
        assert fit_result.network is not None
        weights = {name: tensor.cpu() for name, tensor in weights_of(fit_result.network).items()}
        extra = {f"pretraining_{name}": value for name, value in fit_result.metrics.items()}
        steps = fit_result.steps
        return {"weights": weights, "extra_metrics": extra, "pretraining_steps": steps, "steps": steps, "found": {}}

    def _stage(self, run: Run, recipe: Any, steps_before: int, after: Iterable[str]) -> Run:
        """Return the run of a stage; its progress includes the stages before and the sets after it."""
        steps_after = sum(run.recipe.total_steps(self.splits_of(name).num_examples) for name in after)
        on_stage_step = lambda step, steps: run.on_step(steps_before + step, steps_before + steps + steps_after)  # noqa: E731
        return replace(run, recipe=recipe, start=None, report=always_continue, on_step=on_stage_step)
