"""Masked language modeling tasks: Python's documentation, and the Pile as in Crammed-BERT."""

from collections.abc import Mapping
from dataclasses import replace
from typing import final

from search_spaces.architecture.architecture import Architecture
from tasks.language.corpus import Corpus, TextSource, stdlib_text
from tasks.language.masked import MaskedRecipe, MaskedSplits, MaskedTask
from tasks.language.masked_baselines import masked_methods
from tasks.language.row_layouts import PackedLayout
from tasks.language.task import CorpusTextTask
from tasks.language.tokenizer import Tokenizer

_STDLIB = MaskedRecipe(
    steps=2000, batch=4, lr=8e-3, weight_decay=0.1, betas=(0.9, 0.98), warmup=0.1, reports=4, accelerator="cpu"
)

# Geiping and Goldstein (2023) and their code: a triangular learning rate, AdamW, a quarter of the tokens masked, and a
# day on one GPU. In the first six tenths of it the batch grows by micro-batches of 128 rows.
_CRAMMING = MaskedRecipe(
    hours=24.0,
    batch=8192,
    batch_ramp=0.6,
    accumulate=64,
    lr=1e-3,
    weight_decay=0.01,
    betas=(0.9, 0.98),
    warmup=0.5,
    schedule="linear",
    clip=0.5,
    precision="bf16-mixed",
    compile=True,
    measured=2_000,
)
_MINUTE = replace(_CRAMMING, hours=0.0, steps=500, batch=512, batch_ramp=0.0, accumulate=1)
"""A minute of a large GPU."""


@final
class StdlibMLM(MaskedTask):
    """Predict a masked quarter of the tokens of Python's documentation, in stdlib-lm's byte pairs; needs no data.

    The encoder is Crammed-BERT's (Geiping and Goldstein, 2023), small and with rotary positions.
    """

    name = "stdlib-mlm"
    takes_data = False
    version = 1
    style, vocabulary, context, layout = "crammed-bert-rotary", 2049, 128, PackedLayout()
    base = Architecture(depth=4, width=128, heads=4, head_dim=32, hidden=256)
    presets = {  # noqa: RUF012  # Task declares it a ClassVar
        "smoke": replace(_STDLIB, steps=20, batch=2, measured=64, reports=2),
        "proxy": _STDLIB,
    }

    def baselines(self, recipe: MaskedRecipe) -> Mapping[str, Mapping[str, float]]:
        """Return the metrics of unigrams and bigrams."""
        assert isinstance(self.splits, MaskedSplits)
        return masked_methods(self.splits, recipe, self.vocabulary, self.summary)

    def load_text(self) -> tuple[Corpus, Tokenizer]:
        return stdlib_text(self.max_tokens)


@final
class PileMLM(CorpusTextTask, MaskedTask):
    """The Pile in rows of 128 tokens, a quarter of them masked, and Crammed-BERT.

    Tokens are byte pairs instead of Crammed-BERT's word pieces. The base is that of its code. "leaner" has the layers
    and heads of Leaner Transformers' table 2, with the head dimension that gives its parameter count. "paper" takes a
    day on one GPU, the other presets a minute.
    """

    name = "pile-mlm"
    version = 1
    source, tokenizer = TextSource(hub="EleutherAI/the_pile_deduplicated"), "trained"
    style, vocabulary, context, layout = "crammed-bert", 32_768, 128, PackedLayout()
    base = Architecture(depth=16, width=768, heads=12, head_dim=64, hidden=1536)
    presets = {  # noqa: RUF012
        "smoke": MaskedRecipe(steps=2, batch=2, lr=1e-3, measured=8, reports=2),
        **dict.fromkeys(("proxy", "leaner"), _MINUTE),
        "paper": _CRAMMING,
    }
    bases = {"leaner": replace(base, depth=10, heads=24, head_dim=32)}  # noqa: RUF012
