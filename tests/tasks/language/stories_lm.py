"""A language task in one file, as somebody with a corpus of their own would write it."""

import hashlib
from dataclasses import replace

from search_spaces import Architecture
from tasks.language.corpus import Corpus
from tasks.language.language_presets import LanguageRecipe
from tasks.language.row_layouts import PackedLayout
from tasks.language.shards import MemoryShard
from tasks.language.task import LanguageTask
from tasks.language.tokenizer import Tokenizer, train_tokenizer

STORIES = [f"Once there were {number} layers, and layer {number % 7} wrote to the stream." for number in range(300)]
SHORT = LanguageRecipe(steps=6, batch=8, accumulate=2, lr=1e-2, reports=2, accelerator="cpu")


class StoriesLM(LanguageTask):
    """Three hundred sentences."""

    name = "stories-lm"
    version = 1
    style, vocabulary, context, layout, tied = "llama", 300, 16, PackedLayout(), True
    base = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=16, topology="grn-v3")
    presets = {  # noqa: RUF012
        "smoke": SHORT,
        "proxy": SHORT,
        "sharded": replace(SHORT, sharing="fsdp"),
    }

    def load_text(self) -> tuple[Corpus, Tokenizer]:
        """The sentences, parted by their numbers."""
        parts = [(MemoryShard(tuple(STORIES[a:b])),) for a, b in ((0, 240), (240, 270), (270, 300))]
        fingerprint = hashlib.sha256("".join(STORIES).encode()).hexdigest()
        return Corpus(*parts, fingerprint), train_tokenizer(STORIES[:240], self.vocabulary)
