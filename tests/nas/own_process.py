"""Commands in processes of their own, forked from one that has loaded what nearly all of them need.

A command that a shell starts takes seconds to load PyTorch, and one of these a fraction of one. What a command loads,
what it imports from where it is begun, and what it makes of streams that are closed are asked of real ones.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

_LOADED = ("nas.cli", "nas.asked_search", "nas.searching", "nas.picture", "tasks.supervised_training", "torch._dynamo")
_PATIENCE = 300.0

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload([*_LOADED])


_CAPABILITIES_VERSION_3, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 0x20080522, 1, 2


def heed_modes() -> None:
    """Root heeds the modes of files as anybody does once it has not these."""
    libc, of_this_process = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then the same of further capabilities
    assert libc.capget(of_this_process, sets) == 0
    for number in (0, 1):  # access(2) asks what is permitted
        sets[number] &= ~(1 << _CAP_DAC_OVERRIDE | 1 << _CAP_DAC_READ_SEARCH)
    assert libc.capset(of_this_process, sets) == 0


def in_own_process(
    *words: str, cwd: Path | None = None, out: Path | None = None, first: Callable[[], None] | None = None
) -> CompletedProcess[str]:
    """Run `nas` with these words, in the environment of now; `first` is called there before anything else."""
    with TemporaryDirectory() as folder:
        printed, said = out or Path(folder, "out"), Path(folder, "err")
        asked = (words, cwd or Path.cwd(), dict(os.environ), (Path(os.devnull), printed, said), first)
        process = _FORKS.Process(target=_command, args=asked)
        process.start()
        process.join(_PATIENCE)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"nas {' '.join(words)}: {said.read_text()}")
        return CompletedProcess(words, process.exitcode, "" if out else printed.read_text(), said.read_text())


def _command(
    words: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    streams: Sequence[Path],
    first: Callable[[], None] | None,
) -> None:
    from nas.cli import main

    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["nas", *words]
    if first:
        first()
    main()
