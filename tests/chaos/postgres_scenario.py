"""A search by several coordinators under random kills, halts and outages of the server."""

import os
import signal
import time
from pathlib import Path
from random import Random

from coordinators import Coordinator, begin, check, none_left_behind, trained_keys
from postgres_server import Server, a_server

TRIALS = 24


def several_coordinators(random: Random, folder: Path) -> None:
    """Search under disturbances. Raises AssertionError if a row is lost or stored twice.

    Args:
        random: Draws the disturbances and their times.
        folder: An empty folder for files and logs of the coordinators.
    """
    os.environ["TOYS_SECONDS"] = "0.3"
    with a_server() as server, none_left_behind():
        url = server.database()
        running = [_begin(random, folder, url) for _ in range(4)]
        every = [*running]
        for _ in range(random.randint(2, 6)):
            time.sleep(random.uniform(0.1, 2.0))
            _disturb(random, folder, server, url, running)
            every += [coordinator for coordinator in running if coordinator not in every]
        for coordinator in running:
            status, output = coordinator.end(), coordinator.output()
            # the server was down at its start
            late = "depth=" not in output and "postgresql://" in output.splitlines()[-1]
            assert status == 0 or (status == 2 and late), output
        last = _begin(random, folder, url)
        assert last.end() == 0, last.output()
        check(server, url, trials=TRIALS)
        assert len(trained_keys(folder)) >= TRIALS
        assert any("depth=" in coordinator.output() for coordinator in (*every, last))  # a line per trial


def _begin(random: Random, folder: Path, url: str) -> Coordinator:
    place = folder / random.choice(("one", "other"))  # shared or separate checkpoints
    return begin(place, url, trials=TRIALS)


def _disturb(random: Random, folder: Path, server: Server, url: str, running: list[Coordinator]) -> None:
    coordinator = running[random.randrange(len(running))]
    match random.choice(("kill", "halt", "restart", "away")):
        case "kill":
            coordinator.signal(signal.SIGKILL)
            coordinator.process.join()
            running.remove(coordinator)
            running.append(_begin(random, folder, url))
        case "halt":
            coordinator.signal(signal.SIGSTOP)
            time.sleep(random.uniform(0.1, 5.0))
            coordinator.signal(signal.SIGCONT)
        case "restart":
            server.restart()
        case "away":
            server.stop()
            time.sleep(random.uniform(0.1, 4.0))
            server.start()
