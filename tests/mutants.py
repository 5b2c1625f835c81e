"""Mutation check: each change of tests/mutants.toml is made to a copy of the project, whose tests must notice it.

    python -m tests.mutants                          # all of them: about half an hour on two cores
    python -m tests.mutants --area budgets           # a part
    python -m tests.mutants --root OLD -o old.json   # another checkout, for a comparison

The text that a mutant replaces must occur once in the packages: if you change that text, change the mutant. Exit status
1 if a mutant is not noticed, 2 if one no longer applies or the tests fail without mutants.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_PACKAGES = ("nas", "results", "search_spaces", "tasks")
_SELECTION = "not (outside or slow or chaos or browser)"
"""The default selection in other words: messages are compared only with the default's own words."""

_Plain = argparse.RawDescriptionHelpFormatter
_PATIENCE = 600.0
"""Seconds for the tests of one mutant, which take a minute or two."""

_OUTCOMES = {0: "unnoticed", 1: "noticed"}
"""pytest's exit status -> outcome of a mutant; other statuses mean that the tests could not run."""


@dataclass(frozen=True)
class Mutant:
    """One change to the product.

    Attributes:
        area: equations, budgets, fronts, resume, sampler or counting.
        what: The fault.
        old: The original text.
        new: Its replacement.
        tests: Files and folders whose tests must notice.
    """

    area: str
    what: str
    old: str
    new: str
    tests: Sequence[str]


def file_of(mutant: Mutant, root: Path) -> Path:
    """The only file with the text. Raises LookupError if there is none or more than one."""
    files = (file for package in _PACKAGES for file in sorted((root / package).rglob("*.py")))
    places = [(file, file.read_text().count(mutant.old)) for file in files]
    occurrences = [(file, number) for file, number in places if number]
    if [number for _, number in occurrences] != [1]:
        raise LookupError(
            f"{mutant.what}: its text stands {sum(number for _, number in occurrences)} times in the packages"
        )
    return occurrences[0][0].relative_to(root)


def run(tests: Sequence[str], root: Path, mutant: Mutant | None = None) -> str:
    """Run tests in a copy of a checkout with a mutant's change: "noticed" (one failed), "unnoticed" or "broken".

    Tests of the changed file run first, because they are the most likely to fail.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy, nearest = Path(folder, "project"), list[str]()
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", "site", "nas-runs"))
        if mutant is not None:
            file = copy / file_of(mutant, root)
            file.write_text(file.read_text().replace(mutant.old, mutant.new))
            same_name = copy.glob(f"tests/**/test_{file.stem}.py")
            nearest = [str(path) for path in same_name if any(path.is_relative_to(copy / test) for test in tests)]
        options = ["-q", "-x", "-p", "no:cacheprovider", "-m", _SELECTION]
        command = [sys.executable, "-m", "pytest", *options, *nearest, *tests]
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            patience = None if mutant is None else _PATIENCE
            done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=patience)
        except subprocess.TimeoutExpired:  # an endless loop counts as noticed
            return "noticed"
    if done.returncode not in _OUTCOMES:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return _OUTCOMES.get(done.returncode, "broken")


def main(words: Sequence[str] | None = None) -> int:
    """Run the mutants, print a line each, and write the outcomes on request."""
    every: Mapping[str, Any] = tomllib.loads((_HERE / "mutants.toml").read_text())
    areas = sorted({entry["area"] for entry in every["mutant"]})
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__, formatter_class=_Plain)
    parser.add_argument("--area", choices=areas, help="Only mutants of this area.")
    parser.add_argument("--root", type=Path, default=_HERE.parent, help="The checkout whose tests are tried.")
    parser.add_argument("--jobs", type=int, default=2, help="Mutants at once.")
    parser.add_argument("-o", "--output", type=Path, help="Write a JSON file: mutant -> noticed, unnoticed or broken.")
    options = parser.parse_args(words)
    mutants = [Mutant(**entry) for entry in every["mutant"] if options.area in (None, entry["area"])]
    try:
        for mutant in mutants:
            file_of(mutant, options.root)
    except LookupError as error:
        print(error, file=sys.stderr)
        return 2
    print("running the tests without any change ...", flush=True)
    if run(sorted({test for mutant in mutants for test in mutant.tests}), options.root) != "unnoticed":
        print("these tests fail without any change", file=sys.stderr)
        return 2
    outcomes = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, outcome in zip(
            mutants, pool.map(lambda mutant: run(mutant.tests, options.root, mutant), mutants), strict=True
        ):
            outcomes[mutant.what] = outcome
            print(f"{outcome:10} {mutant.area:10} {mutant.what}", flush=True)
    if options.output:
        options.output.write_text(json.dumps(outcomes, indent=1) + "\n")
    print(f"{sum(outcome == 'noticed' for outcome in outcomes.values())} of {len(outcomes)} mutants were noticed")
    return int(any(outcome != "noticed" for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
