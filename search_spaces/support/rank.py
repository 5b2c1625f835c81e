"""Rank and world size of a distributed training, as torchrun starts it."""

import os
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import torch

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class RankInfo:
    """One process of a distributed training; it reads examples `rank`, `rank + world_size` ...

    Attributes:
        rank: Index of the process, from 0.
        world_size: Number of processes.
    """

    rank: int = 0
    world_size: int = 1

    @property
    def shard(self) -> slice:
        """The slice of any sequence that this process handles."""
        return slice(self.rank, None, self.world_size)

    def gather(self, value: Value) -> list[Value]:
        """Gather a value from every process, in order of rank. All processes must call it and get the same list."""
        if self.world_size == 1:
            return [value]
        values: list[Any] = [None] * self.world_size
        torch.distributed.all_gather_object(values, value)
        return values

    def first(self, value: Value) -> Value:
        """Return the first process's value. All processes must call it."""
        return self.gather(value)[0]


ALONE: Final = RankInfo()


def world_size() -> int:
    """Return the number of processes that train one network: as many as torchrun started."""
    return int(os.environ["WORLD_SIZE"]) if torch.distributed.is_torchelastic_launched() else 1


def rank_info() -> RankInfo:
    """Return the rank and world size of this process."""
    return RankInfo(int(os.environ["RANK"]), world_size()) if world_size() > 1 else ALONE
