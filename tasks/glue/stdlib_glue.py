"""stdlib-glue: two sets in GLUE's format, built from Python's own documentation; needs no data."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, final

from tasks.base import Metric
from tasks.glue.corpus_sets import reference, word_order
from tasks.glue.recipe import GlueRecipe
from tasks.glue.sets import GlueSet, GlueSetData
from tasks.glue.task import GlueTask
from tasks.language.corpus import Corpus, stdlib_corpus
from tasks.language.masked import MaskedTask
from tasks.language.masked_tasks import StdlibMLM

_RECIPE = GlueRecipe(
    epochs=5, batch=16, lr=1e-3, weight_decay=0.01, clip=0.0, pretraining="proxy", accelerator="cpu", reports=1
)
_BUILDERS: Mapping[str, Callable[[Corpus], GlueSetData]] = {"word_order": word_order, "reference": reference}


@final
class StdlibGlue(GlueTask):
    """stdlib-mlm's network, fine-tuned to detect swapped words and to classify the source of sentences."""

    name = "stdlib-glue"
    takes_data = False
    version = 2
    base = StdlibMLM.base
    sets: ClassVar[Mapping[str, GlueSet]] = {
        "word_order": GlueSet(name="word_order", labels=("swapped", "written"), scores=("matthews",)),
        "reference": GlueSet(name="reference", labels=("docstring", "reference"), scores=("accuracy",)),
    }
    metrics = (
        Metric("score", "mean over sets", "max"),
        Metric("word_order", "Matthews correlation", "max"),
        Metric("reference", "share", "max"),
    )
    presets = {  # noqa: RUF012
        "smoke": replace(_RECIPE, epochs=0, steps=2, measured=64, pretraining="smoke"),
        "proxy": _RECIPE,
    }

    @cached_property
    def pretraining(self) -> MaskedTask:  # type: ignore[override]
        return StdlibMLM()

    def load_texts(self, name: str) -> GlueSetData:
        return _BUILDERS[name](stdlib_corpus())
