"""Proof for big moves: a fixed set of small trainings, searches and reports, as one file that two versions must share.

    python -m tests.proof                       # run it all, and compare with tests/proof.json: under ten minutes
    python -m tests.proof --write tests/proof.json
    python -m tests.proof --compare old.json new.json

Files are the same to the last digit on one machine. Other processors, other releases of torch and Python (whose
documentation is what some tasks read) give other digits: there, write the file with the older version first.
Names that a change renames on purpose stand in tests/proof_names.toml, old = "new": columns, options, topologies.
Identities and keys are hashes of names; where these were renamed, they must be the old ones one for one.
"""

import argparse
import contextlib
import io
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import nas
from nas.cli.main import main as command
from nas.workers.resources import Resources
from results.records.row import Row

PROOF = Path(__file__).with_suffix(".json")
NAMES = Path(__file__).with_name("proof_names.toml")

TASKS = (
    "digits-vit", "digit-ranks-vit", "digits-dit", "stdlib-lm", "stdlib-mlm", "stdlib-glue", "lra-listops",
    "goal-point-maze",
)  # fmt: skip
"""One of each family whose data is embedded or generated."""

SMALL: Mapping[str, Any] = {"preset": "smoke", "settings": "epochs=2"}
SEARCH: Mapping[str, Any] = {**SMALL, "resources": Resources(1)}
"""With several, what a search proposes depends on which training ends first."""
BUDGET = "params<=30k"
_VARYING = ("started", "wall_s", "commit", "command", "device", "trace", "seconds")
_VARYING_PREFIXES = ("speed_", "version_", "profile_")
_TIMES = ("latency", "step_")
_HASHES = {"identity", "identities", "key", "data", "start"}
_HASH = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{6,}\b|\b\d{10}\b")
_MADE_BY = ("command", "commit", "versions", "data ")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def evaluations() -> Iterator[tuple[str, Any]]:
    """A training of each family, and of each topology."""
    for task in TASKS:
        yield task, values_of(nas.evaluate(task, preset="smoke", seed=1, storage=store("tasks")))
    for topology in sorted(entry.name for entry in entry_points(group="nas.topologies")):
        row = nas.evaluate("digits-vit", arch="depth=3", topology=topology, **SMALL, storage=store("topologies"))
        yield f"digits-vit {topology}", values_of(row)


def searches() -> Iterator[tuple[str, Any]]:
    """Searches with two samplers, of a space that is listed and one that is not, and their fronts."""
    for sampler in ("surrogate", "nsga2"):
        study = nas.search("digits-vit", budget=BUDGET, trials=14, sampler=sampler, **SEARCH, storage=store(sampler))
        yield f"search {sampler}", [values_of(row) for row in study.rows()]
        yield f"front {sampler}", [vars(summary) for summary in study.summaries()]
    study = nas.search("digits-vit", space="per-block", budget=BUDGET, trials=6, **SEARCH, storage=store("blocks"))
    yield "search per-block", [values_of(row) for row in study.rows()]


def early_stopping() -> Iterator[tuple[str, Any]]:
    """A search whose trainings may end early."""
    study = nas.search("digits-vit", budget=BUDGET, trials=14, rungs=nas.Rungs(1, 0.3), preset="smoke",
                       settings="epochs=6", resources=Resources(1), storage=store("rungs"))  # fmt: skip
    yield "search with rungs", [values_of(row) for row in study.rows()]


def comparison() -> Iterator[tuple[str, Any]]:
    """Architectures side by side at equal size, each with a rate of its own, and what their topologies are worth."""
    found = nas.compare("digits-vit", topology="resnet,dca(k=2),rmt(keys=16)", match="params", seeds=2, tune="lr",
                        tune_trials=2, **SEARCH, study="compared", storage=store("compared"))  # fmt: skip
    yield "compare", [values_of(row) for row in found.rows()]
    yield "compare, side by side", plain(found.records)
    effects = printed("effects", "topology", "--format", "csv", "--storage", store("compared"))
    yield "effects", [numbers[:-1] for numbers in effects]  # the last is a ratio of times
    yield "effects, tables", printed("effects", "topology", "--from", "tables")


def resume() -> Iterator[tuple[str, Any]]:
    """A search that is killed and goes on, and a training that is stopped and goes on: as if nothing had been."""
    words = ("search", "digits-vit", "--budget", BUDGET, "--trials", "14", "--workers", "1", "--seed", "0", "--preset",
             "smoke", "--set", "epochs=2", "--storage", store("killed"))  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "nas", *words], env=here(), stderr=subprocess.DEVNULL)
    while process.poll() is None and ended(store("killed")) < 4:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    if process.wait() != -signal.SIGKILL or not 4 <= ended(store("killed")) < 14:
        raise RuntimeError("the search was not killed on its way")
    study = nas.search("digits-vit", budget=BUDGET, trials=14, **SEARCH, storage=store("killed"))
    yield "search after a kill", [values_of(row) for row in study.rows()]
    changes: dict[str, Any] = {"preset": "smoke", "settings": "epochs=6,reports=3", "storage": store("stopped")}
    nas.evaluate("digits-vit", **changes, max_steps=1)
    yield "training after a stop", values_of(nas.evaluate("digits-vit", **changes))


def reports() -> Iterator[tuple[str, Any]]:
    """What commands print of it."""
    searched = ("--storage", store("surrogate"))
    yield "nas front", printed("front", *searched)
    yield "nas results", printed("results", *searched, "--format", "csv", "--by", "topology")
    yield "nas results of tables", printed("results", "--from", "tables", "--by", "topology", "--format", "csv")
    nas.load(storage=store("surrogate")).report("report.html")
    page = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>|<[^>]*>", " ", Path("report.html").read_text())
    yield "nas report", numbers_of(page)
    for words in (("cost", "digits-vit", "--by", "layer"), ("reproduce", "params")):
        yield f"nas {' '.join(words)}", printed(*words)
    scores = nas.tournament("replay:digit-ranks-vit", samplers="surrogate,nsga2,random", seeds=2, trials=30)
    yield "tournament", plain(scores.records)


PARTS: Sequence[Callable[[], Iterator[tuple[str, Any]]]] = (
    evaluations, searches, early_stopping, comparison, resume, reports,
)  # fmt: skip


def store(name: str) -> str:
    """A database of its own in the working folder."""
    return f"sqlite:///{name}/studies.db"


def ended(storage: str) -> int:
    """How many rows a store has, which may not be there yet."""
    try:
        return len(nas.load("all", storage=storage))
    except nas.UserError:
        return 0


def values_of(row: Row) -> dict[str, Any]:
    """All of a Row that another run of the same has as well: columns and curve, without times and versions."""
    columns = {
        name: value
        for name, value in row.columns().items()
        if name not in _VARYING and not name.startswith(_VARYING_PREFIXES)
    }
    return {**columns, "curve": [[point["step"], dict(point["metrics"])] for point in row.curve]}


def printed(*words: str) -> list[list[str]]:
    """The numbers that a command prints, line by line."""
    out, argv = io.TextIOWrapper(io.BytesIO(), write_through=True), sys.argv
    sys.argv = ["nas", *words]
    try:
        with contextlib.redirect_stdout(out):
            command()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"nas {' '.join(words)} ended with {end.code}") from end
    finally:
        sys.argv = argv
    return numbers_of(out.buffer.getvalue().decode())


def numbers_of(text: str) -> list[list[str]]:
    """The numbers in each line of a text, without hashes and without what made it."""
    lines = (line.strip() for line in text.splitlines())
    every = (_NUMBER.findall(_HASH.sub(" ", line)) for line in lines if not line.startswith(_MADE_BY))
    return [numbers for numbers in every if numbers]


def here() -> dict[str, str]:
    """The environment in which a process has the packages of this checkout, whichever is installed."""
    return {**os.environ, "PYTHONPATH": str(PROOF.parents[1])}


def plain(records: Any) -> list[tuple[str, Any]]:
    """Records as pairs of names and values, without times."""
    pairs = (pair for record in records for pair in dict(record).items())
    return [(name, value) for name, value in pairs if not name.startswith(_TIMES)]


def run() -> dict[str, Any]:
    """Run all parts in a folder of their own, telling how long each took."""
    here, proof = Path.cwd(), {"machine": machine()}
    os.environ["COLUMNS"] = "300"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for part in PARTS:
                began = time.monotonic()
                proof[part.__name__] = json.loads(json.dumps(dict(part()), default=_plain))
                print(f"{part.__name__:16} {time.monotonic() - began:6.1f} s", file=sys.stderr)
        finally:
            os.chdir(here)
    return proof


def machine() -> dict[str, str]:
    """What digits depend on beside the project."""
    import torch

    capability = torch.backends.cpu.get_cpu_capability()
    return {"python": platform.python_version(), "torch": str(torch.__version__), "cpu": capability}


def differences(old: Any, new: Any, names: Mapping[str, str]) -> list[str]:
    """The places in which two files differ, old names taken for the new ones, each with both values."""
    hashes: dict[str, str] = {}
    return [*_differences(renamed(old, names), new, "", hashes)] + [
        f"two hashes became one: {new_hash}" for new_hash in _twice(hashes.values())
    ]


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A value with old names replaced: as keys, and as whole texts."""
    if isinstance(value, dict):
        return {names.get(name, name): renamed(element, names) for name, element in value.items()}
    if isinstance(value, list):
        return [renamed(element, names) for element in value]
    return names.get(value, value) if isinstance(value, str) else value


def _differences(old: Any, new: Any, place: str, hashes: dict[str, str]) -> Iterator[str]:
    if isinstance(old, str) and isinstance(new, str) and _HASHES & {*place.split("/")[-2:]}:
        if hashes.setdefault(old, new) != new:
            yield f"{place}: {old} is {hashes[old]} elsewhere, and {new} here"
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            if name not in old or name not in new:
                yield f"{place}/{name}: only in the {'old' if name in old else 'new'} file"
            else:
                yield from _differences(old[name], new[name], f"{place}/{name}", hashes)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place}: {len(old)} values, and {len(new)}"
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _differences(one, other, f"{place}/{number}", hashes)
    elif type(old) is not type(new) or old != new:
        yield f"{place}: {old!r:.200}, and {new!r:.200}"


def _twice(values: Any) -> list[str]:
    every = list(values)
    return sorted({value for value in every if every.count(value) > 1})


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset | set) else str(value)


def _read(path: Path) -> dict[str, Any]:
    """A file that this program wrote. Raises ValueError where it is none, in one line."""
    try:
        proof = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(proof, dict) or "machine" not in proof:
        raise ValueError(f"{path} is not a file that --write made.")
    return proof


def _check_machine(path: Path, proof: Mapping[str, Any], here: Mapping[str, str]) -> None:
    """Raise ValueError where a file is of another machine."""
    if proof["machine"] != here:
        raise ValueError(f"{path} is of {proof['machine']}, not {here}: write it here, with its version.")


def main(words: Sequence[str] | None = None) -> int:
    """Run, write or compare. Exit status 1 where two files differ, 2 where they cannot be compared."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__, formatter_class=plain)
    parser.add_argument("--write", type=Path, metavar="FILE", help="Write what this version gives.")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"), help="Compare two files.")
    options = parser.parse_args(words)
    if options.write:
        with options.write.open("a"):  # which fails now rather than in ten minutes
            proof = run()
        options.write.write_text(json.dumps(proof, indent=1) + "\n")
        return 0
    old_file, new_file = options.compare or (PROOF, None)
    try:
        old, new = _read(old_file), _read(new_file) if new_file else None
        _check_machine(old_file, old, new["machine"] if new else machine())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    names = tomllib.loads(NAMES.read_text()) if NAMES.exists() else {}
    lines = differences(old, new or run(), names)
    print(*lines[:50], f"{len(lines)} differences", sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
