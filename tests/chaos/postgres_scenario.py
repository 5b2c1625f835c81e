"""A search by several coordinators while they are killed and halted and their server stops, all at random."""

import os
import signal
import time
from pathlib import Path
from random import Random

from coordinators import Coordinator, begin, check, none_left_behind, trained_keys
from postgres_server import Server, a_server

TRIALS = 24


def several_coordinators(random: Random, folder: Path) -> None:
    """Search, disturb, and check that nothing was stored twice or lost; AssertionError where it was.

    Args:
        random: What happens and when follows from it, as far as processes allow.
        folder: Empty, for what coordinators write; their logs stay there.
    """
    os.environ["TOYS_SECONDS"] = "0.3"
    with a_server() as server, none_left_behind():
        url = server.database()
        running = [_begin(random, folder, url) for _ in range(4)]
        every = [*running]
        for _ in range(random.randint(2, 6)):
            time.sleep(random.uniform(0.1, 2.0))
            _disturb(random, folder, server, url, running)
            every += [one for one in running if one not in every]
        for coordinator in running:
            status, output = coordinator.end(), coordinator.output()
            late = (
                "depth=" not in output and "postgresql://" in output.splitlines()[-1]
            )  # it found no server as it began
            assert status == 0 or (status == 2 and late), output
        last = _begin(random, folder, url)
        assert last.end() == 0, last.output()
        check(server, url, trials=TRIALS)
        assert len(trained_keys(folder)) >= TRIALS
        assert any("depth=" in coordinator.output() for coordinator in (*every, last))  # of each trial that it did


def _begin(random: Random, folder: Path, url: str) -> Coordinator:
    place = folder / random.choice(("one", "other"))  # with and without each other's checkpoints
    return begin(place, url, trials=TRIALS)


def _disturb(random: Random, folder: Path, server: Server, url: str, running: list[Coordinator]) -> None:
    which = running[random.randrange(len(running))]
    match random.choice(("kill", "halt", "restart", "away")):
        case "kill":
            which.signal(signal.SIGKILL)
            which.process.join()
            running.remove(which)
            running.append(_begin(random, folder, url))
        case "halt":
            which.signal(signal.SIGSTOP)
            time.sleep(random.uniform(0.1, 5.0))
            which.signal(signal.SIGCONT)
        case "restart":
            server.restart()
        case "away":
            server.stop()
            time.sleep(random.uniform(0.1, 4.0))
            server.start()
