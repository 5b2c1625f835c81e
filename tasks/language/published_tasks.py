"""Language modelling as the papers have it: their data, tokenizers, decoders, and their recipes as presets.

None of these can run on what is embedded here: each reads the hub, or a folder given by `--data` that holds files of
the same schema and a tokenizer.json (see CorpusTask.text).
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
    """C4, one document of 256 T5 tokens a row, and a LLaMA decoder: GaLore's and ANCRe's pre-training."""

    name = "c4-lm"
    version = 1
    source, tokenizer = _C4, _T5
    style, vocabulary, context, layout, tied = "llama", 32_000, 256, PaddedLayout(), False
    base = C4_BASES["ancre-60m"]
    presets, bases = C4, C4_BASES


@final
class C4DCALM(CorpusTask):
    """C4 packed into rows of 128 T5 tokens, and Flax's decoder with tied words: DeepCrossAttention's scaling runs."""

    name = "c4-dca-lm"
    version = 1
    source, tokenizer = _C4, _T5
    style, vocabulary, context, layout, tied = "lm1b", 32_000, 128, PackedLayout(), True
    base = C4_DCA_BASES["dca-75m"]
    presets, bases = C4_DCA, C4_DCA_BASES


@final
class LM1BLM(CorpusTask):
    """The billion-word benchmark packed into rows of 128 tokens, and Flax's decoder: DeepCrossAttention's ablations."""

    name = "lm1b-lm"
    version = 1
    source = TextSource(hub="billion-word-benchmark/lm1b", revision="refs/convert/parquet")
    tokenizer = "trained"  # Flax trains 30,000 word pieces on the first ten million characters; these are byte pairs
    style, vocabulary, context, layout, tied = "lm1b", 30_000, 128, PackedLayout(), False
    base = LM1B_BASES["dca-lm1b"]
    presets, bases = LM1B, LM1B_BASES


@final
class OpenWebTextLM(CorpusTask):
    """OpenWebText packed into rows of 512 GPT-2 tokens: the residual matrix transformer's and its baseline's rows."""

    name = "openwebtext-lm"
    version = 1
    source, tokenizer = TextSource(hub="Skylion007/openwebtext"), _GPT2
    style, vocabulary, context, layout, tied = "rmt", 50_257, RMT_CONTEXT, PackedLayout(), False
    base = OPENWEBTEXT_BASES["transformer-160m"]
    presets, bases = OPENWEBTEXT, OPENWEBTEXT_BASES


@final
class WikiTextLM(CorpusTask):
    """WikiText-103 packed into rows of 512 GPT-2 tokens, and the decoder of the residual matrix transformer's code.

    A paragraph is a document. Positions are told by distances (ALiBi), GELU is approximated and the residual matrix
    normed by its root mean square: the paper's own, with learned positions, is openwebtext-lm's. The code keeps a row's
    documents from seeing each other; here they do.
    """

    name = "wikitext-lm"
    version = 2
    source, tokenizer = TextSource(hub="Salesforce/wikitext", subset="wikitext-103-raw-v1"), _GPT2
    style, vocabulary, context, layout, tied = "rmt-code", 50_257, RMT_CONTEXT, PackedLayout(), False
    base = WIKITEXT_BASES["transformer-160m"]
    presets, bases = WIKITEXT, WIKITEXT_BASES


@final
class TinyStoriesLM(CorpusTask):
    """TinyStories packed into rows of 512 GPT-2 tokens, and GPT-2: Leaner Transformers' table 3."""

    name = "tinystories-lm"
    version = 1
    source, tokenizer = TextSource(hub="roneneldan/TinyStories"), _GPT2
    style, vocabulary, context, layout, tied = "gpt2", 50_257, 512, PackedLayout(), False
    base = TINYSTORIES_BASES["gpt2-tinystories"]
    presets, bases = TINYSTORIES, TINYSTORIES_BASES
