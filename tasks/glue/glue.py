"""glue: the eight sets of GLUE, after pre-training on the Pile or any text."""

import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import final

from search_spaces.support.errors import UserError, unknown_name_error
from tasks.base import Metric
from tasks.glue.glue_files import GLUE, hub_set, read_set
from tasks.glue.recipe import GlueRecipe
from tasks.glue.sets import GlueSetData
from tasks.glue.task import GlueTask
from tasks.language.corpus import Corpus
from tasks.language.masked import MaskedTask
from tasks.language.masked_tasks import PileMLM
from tasks.language.tokenizer import Tokenizer

_SANE = GlueRecipe(
    epochs=5, batch=16, lr=4e-5, weight_decay=0.0, betas=(0.9, 0.98), warmup=0.1, clip=0.0, pretraining="proxy",
    precision="bf16-mixed", reports=1,
)  # fmt: skip
_UNITS = {"cola": "Matthews correlation", "stsb": "correlation"}


@final
class Glue(GlueTask):
    """GLUE's eight sets, fine-tuned with pile-mlm's network from `--start CHECKPOINT` or after pre-training.

    All sets share one recipe: GLUE_sane of the cramming code (Geiping and Goldstein, 2023), with three differences:

    * AdamW's epsilon is 1e-8 instead of 1e-6.
    * The classifier reads the mean over tokens instead of the first token.
    * Dropout of 0.1 applies to layers' outputs, inside feed-forward layers and before the answer. The original applies
      it to embeddings, attention weights, layers' outputs and before the answer.

    Crammed-BERT's table reports the median of five trainings.
    """

    name = "glue"
    version = 1
    base = PileMLM.base
    sets = GLUE
    metrics = (
        Metric("score", "mean over sets", "max"),
        *(Metric(name, _UNITS.get(name, "share"), "max") for name in GLUE),
    )
    presets = {  # noqa: RUF012
        "smoke": replace(_SANE, epochs=0, steps=2, batch=2, measured=8, pretraining="smoke", precision="32-true"),
        "proxy": _SANE,
        "paper": replace(_SANE, pretraining="paper"),
        "leaner": replace(_SANE, pretraining="leaner"),
    }
    bases = PileMLM.bases

    @cached_property
    def pretraining(self) -> MaskedTask:  # type: ignore[override]
        """pile-mlm, with the text and tokenizer that `--data` names."""
        place = self._place()[1]
        return PileMLM(Path(place) if place else None)

    def read_text(self) -> tuple[Corpus, Tokenizer]:
        """Return the Pile or the text that `--data` names, and the tokenizer."""
        try:
            return super().read_text()
        except UserError as error:
            if self._place()[1]:
                raise
            message = f"{error} For this task's pre-training, give --data FOLDER,pretraining=PLACE."
            raise UserError(error.kind, message, **{**error.fields, "part": "pretraining"}) from error

    def load_texts(self, name: str) -> GlueSetData:
        """Read a set from `--data FOLDER[,pretraining=PLACE][,tokenizer=TOKENIZER]`; without FOLDER from the Hub.

        FOLDER holds GLUE's own files (CoLA/train.tsv) or the Hub's (cola/train-*.parquet). The other parts are as in
        pile-mlm's `--data`.
        """
        folder = self._place()[0]
        if not folder:
            return hub_set(GLUE[name])
        if not Path(folder).is_dir():
            raise UserError(
                "missing-data",
                f"--data of task 'glue' must be a folder with CoLA, SST-2 and other sets, got {folder!r}.",
                option="--data",
                path=folder,
            )
        return read_set(GLUE[name], Path(folder))

    def _place(self) -> tuple[str, str]:
        """Split `--data` into the parts for the sets and for the pre-training."""
        folder, *parts = re.split(r",(\w+)=", f",{self.data or ''}")
        options = dict(zip(parts[::2], parts[1::2], strict=True))
        for name in options.keys() - {"pretraining", "tokenizer"}:
            raise unknown_name_error("part of --data of task 'glue'", name, ("pretraining", "tokenizer"))
        text = options.get("pretraining", "")
        if "tokenizer" in options:
            text = f"{text},tokenizer={options['tokenizer']}".removeprefix(",")
        return folder.removeprefix(","), text
