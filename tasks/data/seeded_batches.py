"""Somebody's loader of batches, with its draws by the seed and a place in its epoch."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from torch import Generator

from tasks.data.splits import derived_seed, seeded_rng

_END = object()


class SeededBatches:
    """A loader whose batches are a function of seed, epoch and number; it goes on where an epoch was left.

    Args:
        loader: Any iterable of batches. Generators of its own and of its samplers are seeded each time it begins.
        seed: Of its draws.
        position: The epoch, and how many batches of it were read before: they are read again and left out. None for
            a loader that is to give the same each time.
    """

    def __init__(self, loader: Any, seed: int, position: Callable[[], tuple[int, int]] | None = None) -> None:
        self.loader, self.seed, self.position = loader, seed, position
        self._epoch, self._round = -1, 0

    def __iter__(self) -> Iterator[Any]:
        epoch, read = self.position() if self.position else (0, 0)
        if self.position and epoch == self._epoch:  # a loader that is shorter than another one begins again
            self._round, read = self._round + 1, 0
        else:
            self._epoch, self._round = epoch, 0
        while True:
            number = 0
            for batch in self._seeded_epoch(epoch, self._round):
                number += 1
                if number > read:
                    yield batch
            if number >= read or number == 0:
                return
            self._round, read = self._round + 1, read - number

    def _seeded_epoch(self, *place: int) -> Iterator[Any]:
        for generator in _generators(self.loader):
            generator.manual_seed(derived_seed(self.seed, "order", *place))
        with seeded_rng(derived_seed(self.seed, "order", *place)):
            batches = iter(self.loader)
        for number in count():
            with seeded_rng(derived_seed(self.seed, "data", *place, number)):
                batch = next(batches, _END)
            if batch is _END:
                return
            yield batch

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # while it is copied, before there is one
            raise AttributeError(name)
        return getattr(self.loader, name)


def _generators(loader: Any) -> list[Generator]:
    """The generators that a loader and its samplers were given."""
    batches = getattr(loader, "batch_sampler", None)
    owners = (loader, getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None))
    generators = [getattr(owner, "generator", None) for owner in owners]
    return list({id(generator): generator for generator in generators if isinstance(generator, Generator)}.values())
