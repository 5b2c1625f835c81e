"""lra-retrieval: whether one of two papers cites the other, byte by byte."""

from pathlib import Path
from typing import final

import torch

from search_spaces.support.errors import UserError
from search_spaces.support.files import check_regular_file
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits
from tasks.lra.lra_presets import RETRIEVAL
from tasks.lra.release import ReleaseFiles
from tasks.lra.task import MAX_BYTES, LongRangeTask, byte_ids, pad_rows, splits_of

_LAYOUT = ReleaseFiles(
    "lra-retrieval",
    "tsv_data",
    ("new_aan_pairs.train.tsv", "new_aan_pairs.eval.tsv", "new_aan_pairs.test.tsv"),
)


@final
class LRARetrieval(LongRangeTask):
    """Citation prediction for pairs of ACL Anthology papers (Radev et al., 2013), by the first 4,000 bytes of each.

    The release has 147,086 / 18,090 / 17,437 pairs, which take 3 GB of memory here.
    """

    name = "lra-retrieval"
    version = 1
    context = 4096
    classes = 2
    texts = 2
    presets = RETRIEVAL

    def load(self) -> TensorSplits:
        """Read the release's tables."""
        folder = _LAYOUT.find(self.data)
        train, validation, test = (_table(folder / name, self.context) for name in _LAYOUT.files)
        return splits_of(train, validation, test)


def _table(path: Path, tokens: int) -> Batch:
    """Read pairs of texts and answers of a file without a header: answer, two names, two texts, separated by tabs.

    Quotation marks are plain text, as in the official pipeline, and the texts' prefix ("b'") is part of them.
    """
    texts, answers = [], []
    with check_regular_file(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            fields = line.rstrip(b"\r\n").split(b"\t")
            if len(fields) != 5 or fields[0] not in (b"0.0", b"1.0", b"0", b"1"):
                raise UserError(
                    "bad-data",
                    f"{path}, line {number}, must be 0.0 or 1.0, two names and two texts, separated by tabs. "
                    "Unpack the release again.",
                    path=str(path),
                    line=number,
                )
            texts += [byte_ids(text[:MAX_BYTES]) for text in fields[3:]]
            answers.append(int(float(fields[0])))
    return pad_rows(texts, tokens, torch.int16).unflatten(0, (-1, 2)), torch.tensor(answers)
