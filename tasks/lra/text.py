"""lra-text: sentiment of movie reviews, byte by byte."""

from pathlib import Path
from typing import final

import torch

from search_spaces.support.errors import UserError
from search_spaces.support.files import check_regular_file
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits
from tasks.lra.lra_presets import TEXT
from tasks.lra.release import ReleaseFiles
from tasks.lra.task import MAX_BYTES, LongRangeTask, byte_ids, pad_rows, splits_of

_LAYOUT = ReleaseFiles(
    "lra-text",
    "aclImdb",
    ("train/neg", "train/pos", "test/neg", "test/pos"),
    "https://ai.stanford.edu/~amaas/data/sentiment",
)
_HELD_OUT = 10
"""One training review in so many is for validation."""


@final
class LRAText(LongRangeTask):
    """Sentiment classification of IMDb's 50,000 reviews (Maas et al., 2011), by the first 4,000 bytes of each.

    The official pipeline validates on the test reviews. Here validation is the last tenth of each class's training
    reviews, by number, and test stays unseen. The sizes are 22,500 / 2,500 / 25,000.
    """

    name = "lra-text"
    version = 1
    context = 4096
    classes = 2
    presets = TEXT

    def load(self) -> TensorSplits:
        """Read the release's folders, one file per review, named NUMBER_STARS.txt."""
        folder = _LAYOUT.find(self.data)
        learned, test = ([_reviews(folder / part / name) for name in ("neg", "pos")] for part in ("train", "test"))
        cuts = [len(reviews) - len(reviews) // _HELD_OUT for reviews in learned]
        train = [reviews[:split] for reviews, split in zip(learned, cuts, strict=True)]
        validation = [reviews[split:] for reviews, split in zip(learned, cuts, strict=True)]
        return splits_of(*(_batch(part, self.context) for part in (train, validation, test)))


def _reviews(folder: Path) -> list[bytes]:
    """Return the first bytes of each review of a folder, in the order of their numbers."""
    numbers = {path: path.name.partition("_")[0] for path in folder.glob("*_*.txt")}
    for path, number in numbers.items():
        if not number.isdecimal():
            raise UserError(
                "bad-data",
                f"a review's file must be named NUMBER_STARS.txt, got {str(path)!r}. Unpack the release again.",
                path=str(path),
            )
    paths = sorted(numbers, key=lambda path: int(numbers[path]))
    return [_beginning(path) for path in paths]


def _beginning(path: Path) -> bytes:
    with check_regular_file(path).open("rb") as file:
        return file.read(MAX_BYTES)


def _batch(reviews_by_class: list[list[bytes]], tokens: int) -> Batch:
    ids = pad_rows([byte_ids(text) for reviews in reviews_by_class for text in reviews], tokens, torch.int16)
    return ids, torch.tensor([answer for answer, reviews in enumerate(reviews_by_class) for _ in reviews])
