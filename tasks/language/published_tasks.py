"""Language modeling tasks of papers: data, tokenizers, decoders, and recipes as presets.

Each reads from the Hub, or from a folder given by `--data` with files of the same schema and a tokenizer.json (see
CorpusTextTask.load_text).
"""

from typing import final

from tasks.language.corpus import TextSource
from tasks.language.language_presets import (
    C4,
    C4_BASES,
    C4_DCA,
    C4_DCA_BASES,
    LM1B,
    LM1B_BASES,
    OPENWEBTEXT,
    OPENWEBTEXT_BASES,
    RMT_CONTEXT,
    TINYSTORIES,
    TINYSTORIES_BASES,
    WIKITEXT,
    WIKITEXT_BASES,
)
from tasks.language.row_layouts import PackedLayout, PaddedLayout
from tasks.language.task import CorpusTask

_C4 = TextSource(hub="allenai/c4", subset="en")
_T5, _GPT2 = "google-t5/t5-base", "openai-community/gpt2"


@final
class C4LM(CorpusTask):
    """C4 with one document per row of 256 T5 tokens, and a LLaMA decoder: the pre-training of GaLore and ANCRe."""

    name = "c4-lm"
    version = 1
    source, tokenizer = _C4, _T5
    style, vocabulary, context, layout, tied = "llama", 32_000, 256, PaddedLayout(), False
    base = C4_BASES["ancre-60m"]
    presets, bases = C4, C4_BASES


@final
class C4DCALM(CorpusTask):
    """C4 in rows of 128 T5 tokens, and Flax's decoder with tied embeddings: DeepCrossAttention's scaling runs."""

    name = "c4-dca-lm"
    version = 1
    source, tokenizer = _C4, _T5
    style, vocabulary, context, layout, tied = "lm1b", 32_000, 128, PackedLayout(), True
    base = C4_DCA_BASES["dca-75m"]
    presets, bases = C4_DCA, C4_DCA_BASES


@final
class LM1BLM(CorpusTask):
    """The One Billion Word benchmark in rows of 128 tokens, and Flax's decoder: DeepCrossAttention's ablations."""

    name = "lm1b-lm"
    version = 1
    source = TextSource(hub="billion-word-benchmark/lm1b", revision="refs/convert/parquet")
    tokenizer = "trained"  # byte pairs; Flax trains 30,000 word pieces on the first ten million characters
    style, vocabulary, context, layout, tied = "lm1b", 30_000, 128, PackedLayout(), False
    base = LM1B_BASES["dca-lm1b"]
    presets, bases = LM1B, LM1B_BASES


@final
class OpenWebTextLM(CorpusTask):
    """OpenWebText in rows of 512 GPT-2 tokens: the residual matrix transformer and its baseline."""

    name = "openwebtext-lm"
    version = 1
    source, tokenizer = TextSource(hub="Skylion007/openwebtext"), _GPT2
    style, vocabulary, context, layout, tied = "rmt", 50_257, RMT_CONTEXT, PackedLayout(), False
    base = OPENWEBTEXT_BASES["transformer-160m"]
    presets, bases = OPENWEBTEXT, OPENWEBTEXT_BASES


@final
class WikiTextLM(CorpusTask):
    """WikiText-103 in rows of 512 GPT-2 tokens, and the decoder of the residual matrix transformer's code.

    A paragraph is a document. Positions are relative (ALiBi), GELU is approximated, and the residual matrix has an RMS
    norm. openwebtext-lm has the paper's own decoder, with learned positions. The code masks attention between the
    documents of a row; this task does not.
    """

    name = "wikitext-lm"
    version = 2
    source, tokenizer = TextSource(hub="Salesforce/wikitext", subset="wikitext-103-raw-v1"), _GPT2
    style, vocabulary, context, layout, tied = "rmt-code", 50_257, RMT_CONTEXT, PackedLayout(), False
    base = WIKITEXT_BASES["transformer-160m"]
    presets, bases = WIKITEXT, WIKITEXT_BASES


@final
class TinyStoriesLM(CorpusTask):
    """TinyStories in rows of 512 GPT-2 tokens, and GPT-2: table 3 of Leaner Transformers."""

    name = "tinystories-lm"
    version = 1
    source, tokenizer = TextSource(hub="roneneldan/TinyStories"), _GPT2
    style, vocabulary, context, layout, tied = "gpt2", 50_257, 512, PackedLayout(), False
    base = TINYSTORIES_BASES["gpt2-tinystories"]
    presets, bases = TINYSTORIES, TINYSTORIES_BASES
