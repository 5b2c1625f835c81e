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

Block = TypeVar("Block")

_CHILD = "import pickle as p, sys; make, number = p.load(sys.stdin.buffer); p.dump(make(number), sys.stdout.buffer)"


def collect_blocks(
    make: Callable[[int], Block], add: Callable[[Block], int], examples: int, size: int, label: str
) -> None:
    """Give `add` the blocks that `make` makes of 0, 1, 2 ..., in this order, until it says that there are enough.

    As many processes share the work as there are cores and blocks.

    Args:
        make: Makes the block of a number, in any process.
        add: Takes a block and says how many examples there are now.
        examples: How many examples are enough.
        size: Examples of a block, about.
        label: What is made, for whoever waits.
    """
    processes = min(_cores(), -(-examples // size))
    with Progress(label, examples) as progress:
        for block in map(make, count()) if processes == 1 else _parallel_blocks(make, processes):
            enough = add(block)
            progress.reach(min(enough, examples))
            if enough >= examples:
                return


def _parallel_blocks(make: Callable[[int], Block], processes: int) -> Iterator[Block]:
    """Blocks in order, without end, each made in another process."""
    futures: deque[Future[Block]] = deque()
    numbers = count()
    with ThreadPoolExecutor(processes) as pool:
        try:
            while True:
                while len(futures) < 2 * processes:
                    futures.append(pool.submit(_make_in_subprocess, make, next(numbers)))
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()


def _make_in_subprocess(make: Callable[[int], Block], number: int) -> Block:
    """Make a block in a process of its own.

    multiprocessing would import the program's main module there again, which must be written for that; one that is not
    would wait for itself where the cache is locked. Ctrl-C is the parent's matter: hence the session.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    request = pickle.dumps((make, number))
    done = subprocess.run(  # noqa: S603  # this very Python
        [sys.executable, "-c", _CHILD], input=request, stdout=subprocess.PIPE, env=environment, check=True,
        start_new_session=True,
    )  # fmt: skip
    return pickle.loads(done.stdout)  # type: ignore[no-any-return]  # noqa: S301  # our own process wrote it


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
