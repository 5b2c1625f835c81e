"""List every benchmark with what it measures: `python -m benchmarks`; write or print the results of stored runs."""

import argparse
import sys
from collections.abc import Sequence

from benchmarks import report
from benchmarks.listing import benchmarks


def main(words: Sequence[str] | None = None) -> None:
    """Do what the command line asks; without options, list the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="List every benchmark.")
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--report", action="store_true", help=f"write {report.PAGE.name} from the stored runs")
    actions.add_argument("--show", metavar="NAME", choices=benchmarks(), help="print all figures of a stored run")
    options = parser.parse_args(words)
    try:
        if options.report:
            report.PAGE.write_text(report.page(report.read_runs()), encoding="utf-8")
        elif options.show:
            print("\n\n".join(report.show(report.read_runs(), options.show)) or f"No run of {options.show} is stored.")
        else:
            for name, measures in benchmarks().items():
                print(f"python -m benchmarks.{name:<18} {measures}")
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
