"""GLUE as a task: a network is trained on masked text once, and from there on each set by itself."""

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
from search_spaces.support.errors import UserError, unknown
from search_spaces.support.rank import rank_info
from tasks.base import Diverged, FitResult, Metric, Task
from tasks.data.batches import Inputs
from tasks.data.splits import Part, TensorSplits
from tasks.glue.fine_tuning import FineTuning
from tasks.glue.recipe import GlueRecipe
from tasks.glue.sets import GlueSet, SetTexts
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
    """Train on masked text, then on each set from there on, and measure how well each is answered.

    The network, its costs and what is kept of it are the pre-training's; a run that begins with weights leaves the
    pre-training out. `score` is the mean over the sets. Development sets are test; one in ten of train, at most 1,000,
    validates. There is nothing to report on the way, and so nothing to stop early.

    Attributes:
        sets: Each by its name.
        pretraining: What is trained before.
    """

    sets: ClassVar[Mapping[str, GlueSet]]
    presets: ClassVar[Mapping[str, GlueRecipe]]
    pretraining: MaskedTask
    reports_intermediate = False
    unused_with_start = ("pretraining",)

    @abstractmethod
    def load_texts(self, name: str) -> SetTexts:
        """The texts of a set. Raises UserError where they are not there."""

    def encoding(self) -> str:
        """The tokenizer of the pre-training."""
        return self.read_text()[1].fingerprint

    def start_tasks(self) -> Mapping[str, int]:
        """This task's, whose networks are those of its pre-training, and that one's."""
        return {**super().start_tasks(), self.pretraining.name: self.pretraining.version}

    def metrics_for(self, recipe: GlueRecipe) -> tuple[Metric, ...]:
        """The mean over the sets that the recipe asks for, and each of them."""
        sets = self.sets_for(recipe)
        return tuple(metric for metric in self.metrics if metric.name in ("score", *sets))

    def sets_for(self, recipe: GlueRecipe) -> Mapping[str, GlueSet]:
        """The sets of a recipe. Raises UserError where it names another one."""
        if {*recipe.sets} == {*self.sets}:
            raise UserError(
                "conflict",
                "sets names all of them, which is what none means. Leave it out.",
                option="sets",
                value=recipe.sets,
            )
        for name in recipe.sets:
            if name not in self.sets:
                raise unknown("set", name, self.sets, of=f"task {self.name!r}")
        return {name: glue_set for name, glue_set in self.sets.items() if name in recipe.sets or not recipe.sets}

    def prepare(self) -> None:
        """Read the text of the pre-training."""
        self.read_text()
        self.pretraining.prepare()

    def read_text(self) -> tuple[Corpus, Tokenizer]:
        """The text of the pre-training and its tokenizer. Raises UserError where they are not there."""
        return self.pretraining.read_text

    def build(self, architecture: Architecture) -> nn.Module:
        """The encoder of the pre-training."""
        return self.pretraining.build(architecture)

    def example(self) -> Inputs:
        """One row of its tokens."""
        return self.pretraining.example()

    def inputs(self, recipe: GlueRecipe) -> Inputs:
        """What it reads of its first validation batch."""
        return self.pretraining.inputs(self.pretraining_recipe(recipe))

    def closed_form(self, architecture: Architecture) -> Count | None:
        """Of the encoder, all of whose tokens are scored."""
        return self.pretraining.closed_form(architecture)

    def fingerprint(self, recipe: GlueRecipe) -> str:
        """Of the text that is trained on, how that is done before, and of the sets."""
        before, preset = self.pretraining, self.pretraining_recipe(recipe)
        pretraining_text = f"{before.name} {before.version} {recipe_text(preset, ())} {before.fingerprint(preset)}"
        sets = [f"{glue_set!r} {self.splits_of(name).fingerprint}" for name, glue_set in self.sets_for(recipe).items()]
        return hashlib.sha256("\n".join((pretraining_text, *sets)).encode()).hexdigest()

    def training_step(self, run: Run) -> Callable[[], None]:
        """A step of fine-tuning on the first of the sets: GLUE's take longer than the training before them."""
        with isolated_rng(run):
            weights = weights_of(self.build(run.architecture))
        [(name, glue_set), *_] = self.sets_for(run.recipe).items()
        tuning = FineTuning(self.pretraining, weights, glue_set, self.splits_of(name))
        return tuning.training_step(replace(run, start=None))

    def baselines(self, recipe: GlueRecipe) -> Mapping[str, Mapping[str, float]]:
        """What is reached by always giving the answer that is the most frequent in training, or their mean."""
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
        """Pre-train where no weights are given, and fine-tune on each set. See Task.fit."""
        if rank_info().world_size > 1:
            raise UserError(
                "unsupported",
                f"task {self.name!r} is trained by one process, got {rank_info().world_size}. Leave torchrun out.",
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
        """What the network is trained by before. Raises UserError for a preset that its task does not have."""
        presets = self.pretraining.presets
        if recipe.pretraining not in presets:
            raise unknown("preset", recipe.pretraining, presets, of=f"task {self.pretraining.name!r}")
        return presets[recipe.pretraining]

    def splits_of(self, name: str) -> TensorSplits:
        """A set as rows of tokens, read once."""
        if name not in self._splits:
            self._splits[name] = splits_of(name, self.load_texts(name), self.read_text()[1], self.pretraining.context)
        return self._splits[name]

    @cached_property
    def _splits(self) -> dict[str, TensorSplits]:
        return {}

    def _fit(self, run: Run, checkpoint: Checkpoint) -> FitResult:
        """Each stage that is not behind it yet; what it gave is kept."""
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
        """The weights that sets begin with, what is known of them, and the steps that they took."""
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
        """The run of a stage, which tells how far it is with those before it and the sets after it."""
        steps_after = sum(run.recipe.total_steps(self.splits_of(name).examples) for name in after)
        on_stage_step = lambda step, steps: run.on_step(steps_before + step, steps_before + steps + steps_after)  # noqa: E731
        return replace(run, recipe=recipe, start=None, report=always_continue, on_step=on_stage_step)
