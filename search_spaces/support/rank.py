"""Processes that train one network together, as torchrun starts them, and which share of the work is whose."""

import os
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import torch

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class RankInfo:
    """One process of several: of a run of examples it reads number `rank`, `rank + world_size` ...

    Attributes:
        rank: Which one, from 0.
        world_size: How many there are.
    """

    rank: int = 0
    world_size: int = 1

    @property
    def shard(self) -> slice:
        """This process's part of anything that is in order."""
        return slice(self.rank, None, self.world_size)

    def gather(self, value: Value) -> list[Value]:
        """What every process has, in their order. All of them must call this, and get the same."""
        if self.world_size == 1:
            return [value]
        values: list[Any] = [None] * self.world_size
        torch.distributed.all_gather_object(values, value)
        return values

    def first(self, value: Value) -> Value:
        """What the first process has. All of them must call this."""
        return self.gather(value)[0]


ALONE: Final = RankInfo()


def processes() -> int:
    """How many processes train one network together: as many as torchrun started."""
    return int(os.environ["WORLD_SIZE"]) if torch.distributed.is_torchelastic_launched() else 1


def rank_info() -> RankInfo:
    """This process's."""
    return RankInfo(int(os.environ["RANK"]), processes()) if processes() > 1 else ALONE
