"""`rooms-lm`: a small decoder of generated stories. Needs no download; takes a minute on one core."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import final

from search_spaces.architecture.architecture import Architecture
from tasks.language.baselines import simple_methods
from tasks.language.corpus import Corpus
from tasks.language.data import LanguageSplits
from tasks.language.language_presets import LanguageRecipe
from tasks.language.rooms import LONGEST, stories
from tasks.language.row_layouts import PaddedLayout
from tasks.language.shards import MemoryShard
from tasks.language.task import LanguageTask
from tasks.language.tokenizer import Tokenizer, train_tokenizer

_SEED, _HELD_OUT, _TRAIN = 0, 1000, 10_000

_PROXY = LanguageRecipe(
    steps=600,
    batch=16,
    optimizer="muon",
    lr=0.02,
    schedule="linear",
    weight_decay=0.1,
    reports=2,
    accelerator="cpu",
    source="tried on the base with one seed, not tuned",
)


@final
class RoomsLM(LanguageTask):
    """Predict the next word of generated stories about people who carry things between rooms; needs no data.

    The stories are like those of bAbI (Weston et al., 2015): "Carl takes the key. Carl goes from the attic to the
    cellar. Where is the key? In the cellar." Each row is one story. Its rules reach further back than four words, so a
    network must attend to beat a 5-gram model.
    """

    name = "rooms-lm"
    takes_data = False
    version = 1
    style = "llama"
    vocabulary = 380
    context = LONGEST + 1
    layout = PaddedLayout()
    tied = True
    base = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=64)
    presets = {  # noqa: RUF012
        "smoke": replace(_PROXY, steps=20, measured=64),
        "proxy": _PROXY,
    }

    def baselines(self, recipe: LanguageRecipe) -> Mapping[str, Mapping[str, float]]:
        """Return the metrics of unigrams, bigrams, 5-grams, and xz primed with the training text."""
        assert isinstance(self.splits, LanguageSplits)
        return simple_methods(self.splits, recipe, self.vocabulary)

    def load_text(self) -> tuple[Corpus, Tokenizer]:
        """Return stories of one draw, and a tokenizer whose tokens are words."""
        texts = stories(2 * _HELD_OUT + _TRAIN, _SEED)
        shards = (texts[2 * _HELD_OUT :], texts[:_HELD_OUT], texts[_HELD_OUT : 2 * _HELD_OUT])
        train, validation, test = ((MemoryShard(part, "generated stories"),) for part in shards)
        fingerprint = hashlib.sha256("\n".join(texts).encode()).hexdigest()
        return Corpus(train, validation, test, fingerprint), train_tokenizer(train[0].texts, self.vocabulary)
