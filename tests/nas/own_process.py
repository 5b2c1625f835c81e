"""Commands in processes of their own, forked from a server that has loaded what nearly all of them need.

A command from a shell takes seconds to load PyTorch; a fork takes a fraction of one. Tests of what a command loads or
prints while loading, of imports from the working directory, and of closed streams start real commands: a fork has
the environment variables that its server had while loading.
"""

import atexit
import ctypes
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from command_line import CommandResult, user_errors
from search_spaces.support.errors import UserError

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "nas.cli.main",
        "nas.request.search_request",
        "nas.engine.run",
        "nas.report.plots",
        "tasks.training.supervised_training",
        "torch._dynamo",
        "pytest",
        "unittest.mock",
    ]
)
_PATIENCE = 300.0

_CAPABILITIES_VERSION_3, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH, _PR_CAPBSET_DROP = 0x20080522, 1, 2, 24


def heed_modes() -> None:
    """Make root respect file modes, in this process and its children, by dropping two capabilities."""
    libc, of_this_process = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then the same of further capabilities
    assert libc.capget(of_this_process, sets) == 0
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        libc.prctl(_PR_CAPBSET_DROP, capability)  # only root may, and only root must
        for number in (0, 1):  # access(2) asks what is permitted
            sets[number] &= ~(1 << capability)
    assert libc.capset(of_this_process, sets) == 0


def in_own_process(
    *words: str, cwd: Path | None = None, out: Path | None = None, first: Callable[[], None] | None = None
) -> CommandResult:
    """Run `nas` with these words and the present environment; call `first` there before the command.

    The result also has the UserError that ended the command.
    """
    with TemporaryDirectory() as folder:
        stdout, stderr, error = out or Path(folder, "out"), Path(folder, "err"), Path(folder, "error")
        for path in (stdout, stderr, error):
            path.touch()
        arguments = (words, cwd or Path.cwd(), dict(os.environ), (Path(os.devnull), stdout, stderr), error, first)
        process = _FORKS.Process(target=_command, args=arguments)
        process.start()
        process.join(_PATIENCE)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"nas {' '.join(words)}: {stderr.read_text()}")
        result = CommandResult(words, process.exitcode, "" if out else stdout.read_text(), stderr.read_text())
        result.error = pickle.loads(content) if (content := error.read_bytes()) else None
        return result


def _command(
    words: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    streams: Sequence[Path],
    error: Path,
    first: Callable[[], None] | None,
) -> None:
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_WRONLY if number else os.O_RDONLY), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["nas", *words]
    multiprocessing.set_start_method(None, force=True)  # the default, not that of this process
    if first:
        first()
    from nas.cli.main import main

    def keep(user_error: UserError) -> None:
        with suppress(OSError):  # the command may not be able to write files
            error.write_bytes(pickle.dumps(user_error))

    try:
        with user_errors(keep):
            main()
    finally:
        atexit._run_exitfuncs()  # forked processes skip them at exit
