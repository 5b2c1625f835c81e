"""Which seed a training is given."""

from collections.abc import Collection, Sequence

from search_spaces.support.errors import UserError
from search_spaces.support.spec import MAX_INTEGER


def next_seed(first: int, taken: Collection[int], recorded: Sequence[int] | None = None) -> int:
    """The seed of a candidate's next training: `first`, or the next one that none of its trainings has.

    Where only recorded seeds will do, they are taken in their order and round, from the one at `first` modulo their
    number on: so searches with other seeds are given other trainings, and none the same one twice.

    Raises:
        UserError: All that were recorded are taken.
    """
    if recorded is None:
        while first in taken:
            first = (first + 1) % (MAX_INTEGER + 1)
        return first
    start = first % len(recorded)
    for seed in (*recorded[start:], *recorded[:start]):
        if seed not in taken:
            return seed
    message = f"all {len(recorded)} recorded seeds of an architecture were used. Ask for fewer --seeds."
    raise UserError("out-of-range", message, option="--seeds", most=len(recorded))
