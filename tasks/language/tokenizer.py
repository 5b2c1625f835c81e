"""Tokenizers, and the number of UTF-8 bytes that each token covers.

Built on Hugging Face's `tokenizers`; a tokenizer is its tokenizer.json.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, pre_tokenizers, trainers

from search_spaces.support.cache import cache_bytes
from search_spaces.support.errors import UserError, cause_fields
from search_spaces.support.files import check_regular_file, kind_of_read_error
from search_spaces.support.progress import status_if_slow
from tasks.language.hub import hub_file

Tokens = NDArray[np.int32]

_MAX_BYTES = 2**28
"""Maximum bytes of a tokenizer.json; one of 250,000 tokens has 2**25."""

BOUNDARIES = ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "[SEP]")
"""Names of the end-of-document token; the first that a tokenizer has is used."""


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer.json with what a language model needs.

    Special tokens in text are encoded as plain text: a document that contains "</s>" does not end there.

    Attributes:
        text: The contents of tokenizer.json.
        source: Its origin, for messages.

    Raises:
        UserError: The text is not a tokenizer, or has no end-of-document token.
    """

    text: str
    source: str

    def __post_init__(self) -> None:
        if self._boundary is None:
            raise UserError(
                "bad-data",
                f"the tokenizer of {self.source} must have one of {', '.join(BOUNDARIES)}. Add one.",
                **self._origin,
                choices=BOUNDARIES,
            )

    @property
    def _origin(self) -> dict[str, str]:
        """The source as a field of an error."""
        return {"path" if Path(self.source).is_file() else "source": self.source}

    @cached_property
    def _inner(self) -> tokenizers.Tokenizer:
        try:
            inner = tokenizers.Tokenizer.from_str(self.text)
        except Exception as error:  # the library raises plain Exception
            message = f"{self.source} is not a valid tokenizer.json: {error!s:.200}."
            raise UserError("bad-file", message, **self._origin, cause=type(error).__name__) from error
        inner.encode_special_tokens = True
        inner.no_truncation()
        inner.no_padding()
        return inner

    @cached_property
    def _boundary(self) -> int | None:
        ids = (self._inner.token_to_id(name) for name in BOUNDARIES)
        return next((i for i in ids if i is not None), None)

    @property
    def boundary(self) -> int:
        """The end-of-document token."""
        assert self._boundary is not None
        return self._boundary

    @cached_property
    def _special_to_unknown(self) -> Tokens:
        """Token -> itself, or the unknown token if it is special: T5's tokenizer would encode "</s>" as special."""
        tokens = np.arange(1 + max(self._inner.get_vocab().values()), dtype=np.int32)
        unknown = self._inner.token_to_id("<unk>")
        for special in (i for i, token in self._inner.get_added_tokens_decoder().items() if token.special):
            tokens[special] = self.boundary if unknown is None else unknown
        return tokens

    @cached_property
    def size(self) -> int:
        """One more than the largest token that can occur; special tokens beyond it never do."""
        return 1 + max(self.boundary, int(self._special_to_unknown.max()))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the tokenizer.json, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def check(self, vocabulary: int, task: str) -> None:
        """Raise UserError if the tokenizer has more tokens than the task's vocabulary."""
        if self.size > vocabulary:
            raise UserError(
                "mismatch",
                f"token ids of {self.source} must be below {vocabulary} for task {task!r}, got {self.size - 1}. "
                f"Give a tokenizer of at most {vocabulary} tokens.",
                task=task,
                value=self.size,
                most=vocabulary,
            )

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return each text's tokens, without end-of-document tokens."""
        encodings = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._special_to_unknown[encoding.ids] for encoding in encodings]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, special ones included."""
        return str(self._inner.decode(list(ids), skip_special_tokens=False))

    def encode_with_sizes(self, texts: Sequence[str]) -> list[tuple[Tokens, Tokens]]:
        """Return each text's tokens, and the UTF-8 bytes that each covers.

        Bytes that the tokenizer skips between two tokens count for the later token; bytes skipped at the end count for
        none.
        """
        encodings = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [
            (self._special_to_unknown[encoding.ids], _bytes(text, [end for _, end in encoding.offsets]))
            for text, encoding in zip(texts, encodings, strict=True)
        ]


def _bytes(text: str, ends: list[int]) -> Tokens:
    """Return the bytes between token ends, given in characters. A character shared by tokens counts for the first."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    widths = 1 + (points > 0x7F).astype(np.int64) + (points > 0x7FF) + (points > 0xFFFF)
    upto = np.concatenate(([0], np.cumsum(widths)))
    return np.diff(np.maximum.accumulate(upto[np.array(ends, dtype=np.int64)]), prepend=0).astype(np.int32)


def tokenizer_at(path: Path) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json, or of a folder that holds one."""
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        return Tokenizer(check_regular_file(file, _MAX_BYTES).read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        message = f"the tokenizer {file} cannot be read: {error}."
        raise UserError(kind_of_read_error(error), message, **{**cause_fields(error), "path": str(file)}) from error


def get_tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of a model on the Hub, from the local cache if it is there."""
    remedy = "Offline, put its tokenizer.json into the folder of --data, or give --data FOLDER,tokenizer=trained."
    return Tokenizer(Path(hub_file(name, "tokenizer.json", remedy)).read_text(encoding="utf-8"), name)


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Train byte-level BPE (Sennrich et al., 2016), as for GPT-2; the result is cached."""
    documents = list(texts)
    digest = hashlib.sha256(f"{tokenizers.__version__} {vocabulary} {len(documents)}\n".encode())
    for document in documents:
        digest.update(f"{len(document)}\n{document}".encode())
    text = cache_bytes(f"tokenizers/{digest.hexdigest()}.bpe", lambda: _train(documents, vocabulary).encode())
    return Tokenizer(text.decode(), "the embedded corpus")


def _train(documents: list[str], vocabulary: int) -> str:
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BOUNDARIES[0]],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    with status_if_slow(f"training a tokenizer of {vocabulary:,} tokens on {len(documents):,} documents ..."):
        inner.train_from_iterator(documents, trainer)
    return inner.to_str()
