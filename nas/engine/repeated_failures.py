"""The end of a search whose evaluations all fail alike."""

import re

from nas.evaluation.failures import OUT_OF_MEMORY, TIMED_OUT
from results.records.row import Row
from search_spaces.support.errors import UserError

MAX_ALIKE = 3
"""Number of failures alike, without any success, after which a search ends."""


class RepeatedFailures:
    """A listener of Rows that ends a search if its first evaluations fail alike: a task that is wrong fails always.

    Any other end lets the search continue, also a lack of memory or time: smaller architectures may succeed. Networks
    over a measured bound are not trained, and do not count. Two reasons are alike if they differ only in numbers.

    Args:
        study: Name of the study.
    """

    def __init__(self, study: str) -> None:
        self._study, self._reasons = study, list[str | None]()

    def __call__(self, row: Row) -> None:
        """Take a Row into account. Raises UserError if it is the last of MAX_ALIKE failures alike."""
        if row.status == "over-budget" or len(self._reasons) == MAX_ALIKE:
            return
        reason = row.error or ""
        may_succeed = row.status != "failed" or reason.startswith((OUT_OF_MEMORY, TIMED_OUT))
        self._reasons.append(None if may_succeed else re.sub(r"\d+", "0", reason))
        if len(self._reasons) < MAX_ALIKE or None in self._reasons or len({*self._reasons}) > 1:
            return
        message = f"the first {MAX_ALIKE} evaluations of study {self._study!r} failed alike: {row.error}"
        remedy = "Correct it and search again, with another --study if you gave one; `--debug` shows tracebacks."
        raise UserError("failed", f"{message.rstrip('.')}. {remedy}", study=self._study, identity=row.identity())
