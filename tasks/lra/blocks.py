"""Work in numbered blocks, shared among processes and gathered in order, and shown how far they are."""

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import TypeVar

from search_spaces.support.progress import Progress

Made = TypeVar("Made")

_CHILD = "import pickle as p, sys; make, number = p.load(sys.stdin.buffer); p.dump(make(number), sys.stdout.buffer)"


def in_blocks(make: Callable[[int], Made], add: Callable[[Made], int], wanted: int, size: int, said: str) -> None:
    """Give `add` the blocks that `make` makes of 0, 1, 2 ..., in this order, until it says that there are enough.

    As many processes share the work as there are cores and blocks.

    Args:
        make: Makes the block of a number, in any process.
        add: Takes a block and says how many examples there are now.
        wanted: How many examples are enough.
        size: Examples of a block, about.
        said: What is made, for whoever waits.
    """
    processes = min(_cores(), -(-wanted // size))
    with Progress(said, wanted) as progress:
        for made in map(make, count()) if processes == 1 else _shared(make, processes):
            enough = add(made)
            progress.reach(min(enough, wanted))
            if enough >= wanted:
                return


def _shared(make: Callable[[int], Made], processes: int) -> Iterator[Made]:
    """Blocks in order, without end, each made in another process."""
    under_way: deque[Future[Made]] = deque()
    numbers = count()
    with ThreadPoolExecutor(processes) as pool:
        try:
            while True:
                while len(under_way) < 2 * processes:
                    under_way.append(pool.submit(_elsewhere, make, next(numbers)))
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


def _elsewhere(make: Callable[[int], Made], number: int) -> Made:
    """Make a block in a process of its own.

    multiprocessing would import the program's main module there again, which must be written for that; one that is not
    would wait for itself where the cache is locked. Ctrl-C is the parent's matter: hence the session.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    asked = pickle.dumps((make, number))
    done = subprocess.run(  # noqa: S603  # this very Python
        [sys.executable, "-c", _CHILD], input=asked, stdout=subprocess.PIPE, env=environment, check=True,
        start_new_session=True,
    )  # fmt: skip
    return pickle.loads(done.stdout)  # type: ignore[no-any-return]  # noqa: S301  # our own process wrote it


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
