"""The seed of a candidate's next training."""

from collections.abc import Collection, Sequence

from search_spaces.support.errors import UserError
from search_spaces.support.spec import MAX_INTEGER


def next_seed(first: int, used_seeds: Collection[int], recorded_seeds: Sequence[int] | None = None) -> int:
    """Return the seed of a candidate's next training: the first one from `first` on that it has not used.

    With recorded seeds, start at index `first` modulo their number and follow their order, cyclically. Searches with
    other seeds then read other trainings, and no search reads the same one twice.

    Raises:
        UserError: All recorded seeds are used.
    """
    if recorded_seeds is None:
        while first in used_seeds:
            first = (first + 1) % (MAX_INTEGER + 1)
        return first
    start = first % len(recorded_seeds)
    for seed in (*recorded_seeds[start:], *recorded_seeds[:start]):
        if seed not in used_seeds:
            return seed
    message = f"an architecture has only {len(recorded_seeds)} recorded seeds. Give fewer --seeds."
    raise UserError("out-of-range", message, option="--seeds", most=len(recorded_seeds))
