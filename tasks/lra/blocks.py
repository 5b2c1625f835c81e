"""Parallel generation of numbered blocks, gathered in order, with a progress bar."""

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
    """Pass the blocks that `make` returns for 0, 1, 2 ... to `add`, in this order, until there are enough examples.

    The work is shared by as many processes as there are cores and blocks.

    Args:
        make: Returns the block of a number, in any process.
        add: Takes a block and returns the number of examples so far.
        examples: Number of examples wanted.
        size: Approximate examples per block.
        label: Label of the progress bar.
    """
    processes = min(_cores(), -(-examples // size))
    with Progress(label, examples) as progress:
        for block in map(make, count()) if processes == 1 else _parallel_blocks(make, processes):
            enough = add(block)
            progress.set_done(min(enough, examples))
            if enough >= examples:
                return


def _parallel_blocks(make: Callable[[int], Block], processes: int) -> Iterator[Block]:
    """Yield blocks in order, endlessly, each made in a subprocess."""
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
    """Make a block in a subprocess.

    multiprocessing would import the main module again, which must be written for that; otherwise it would deadlock on
    the locked cache. The new session leaves Ctrl-C to the parent.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    request = pickle.dumps((make, number))
    done = subprocess.run(  # noqa: S603  # the same Python
        [sys.executable, "-c", _CHILD], input=request, stdout=subprocess.PIPE, env=environment, check=True,
        start_new_session=True,
    )  # fmt: skip
    return pickle.loads(done.stdout)  # type: ignore[no-any-return]  # noqa: S301  # written by our own process


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
