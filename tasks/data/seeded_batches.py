"""A third-party data loader with draws seeded by epoch and batch."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from torch import Generator

from tasks.data.splits import derived_seed, seeded_rng

_END = object()


class SeededBatches:
    """A loader whose batches depend only on the seed, the epoch and the batch number. It can resume within an epoch.

    Args:
        loader: Any iterable of batches. Its generators and those of its samplers are reseeded each time it starts.
        seed: Seed of its draws.
        position: Returns the epoch and the number of its batches already read, which are read again and skipped. None
            for a loader that repeats the same batches each time.
    """

    def __init__(self, loader: Any, seed: int, position: Callable[[], tuple[int, int]] | None = None) -> None:
        self.loader, self.seed, self.position = loader, seed, position
        self._epoch, self._round = -1, 0

    def __iter__(self) -> Iterator[Any]:
        epoch, read = self.position() if self.position else (0, 0)
        if self.position and epoch == self._epoch:  # a loader shorter than another one starts again within the epoch
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

    def _seeded_epoch(self, *epoch_and_round: int) -> Iterator[Any]:
        for generator in _generators(self.loader):
            generator.manual_seed(derived_seed(self.seed, "order", *epoch_and_round))
        with seeded_rng(derived_seed(self.seed, "order", *epoch_and_round)):
            batches = iter(self.loader)
        for number in count():
            with seeded_rng(derived_seed(self.seed, "data", *epoch_and_round, number)):
                batch = next(batches, _END)
            if batch is _END:
                return
            yield batch

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # while it is copied, `loader` is not set yet
            raise AttributeError(name)
        return getattr(self.loader, name)


def _generators(loader: Any) -> list[Generator]:
    """Return the generators of a loader and of its samplers."""
    batches = getattr(loader, "batch_sampler", None)
    owners = (loader, getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None))
    generators = [getattr(owner, "generator", None) for owner in owners]
    return list({id(generator): generator for generator in generators if isinstance(generator, Generator)}.values())
