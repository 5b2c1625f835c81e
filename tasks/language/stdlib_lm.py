"""`stdlib-lm`: a small decoder of the English inside this Python; nothing to download, minutes on two cores."""

from collections.abc import Mapping
from typing import final

from search_spaces.architecture import Architecture
from search_spaces.mistake import Mistake
from tasks.language.baselines import simple_methods
from tasks.language.corpus import Corpus, stdlib_corpus
from tasks.language.data import LanguageSplits
from tasks.language.presets import LanguageRecipe
from tasks.language.rows import Packed
from tasks.language.shards import texts_of
from tasks.language.task import LanguageTask
from tasks.language.tokenizer import Tokenizer, trained_tokenizer


@final
class StdlibLM(LanguageTask):
    """The documentation inside this Python (pydoc's topics, docstrings), in 2048 byte pairs; needs no data."""

    name = "stdlib-lm"
    version = 1
    dialect = "llama"
    vocabulary = 2048
    context = 128
    layout = Packed()
    tied = True
    base = Architecture(depth=4, width=128, heads=4, head_dim=32, hidden=256)
    presets = {  # noqa: RUF012
        "smoke": LanguageRecipe(steps=20, batch=8, lr=3e-3, measured=64, reports=1, accelerator="cpu"),
        "proxy": LanguageRecipe(steps=800, batch=8, lr=3e-3, warmup=0.05, weight_decay=0.1, betas=(0.9, 0.95)),
    }

    def baselines(self, preset: str) -> Mapping[str, Mapping[str, float]]:
        """Tokens by how often they occur, tokens by the one before them, and xz behind the training text."""
        assert isinstance(self.splits, LanguageSplits)
        return simple_methods(self.splits, self.presets[preset], self.vocabulary)

    def text(self) -> tuple[Corpus, Tokenizer]:
        """The standard library's, and a tokenizer trained on what is trained on."""
        if self.data is not None:
            raise Mistake(f"task 'stdlib-lm' reads the Python it runs on and takes no --data, got {str(self.data)!r}.")
        corpus = stdlib_corpus()
        return corpus, trained_tokenizer(texts_of(corpus.train), self.vocabulary)
