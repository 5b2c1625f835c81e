"""The `nas` command: each is a door and what prints what that returns. Quick to start: naming a door loads no torch."""

import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from nas.commands import dashboard, listing, reproduce, results, show
from nas.debugging import DEBUG, show_traceback
from nas.doors.audit import audit
from nas.doors.compare import compare
from nas.doors.cost import cost
from nas.doors.evaluate import evaluate
from nas.doors.export import export
from nas.doors.load import load
from nas.doors.profile import profile
from nas.doors.retrofit import retrofit
from nas.doors.search import search
from nas.options import command
from nas.workers.left_behind import LEFT_BEHIND
from search_spaces.errors import UserError, place_of, printable, reason_of, show_notices

app = typer.Typer(
    name="nas",
    help="Search network architectures under hard budgets, and query what was found.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; a user's error, or one in a plug-in's code, is one line and exit status 2."""
    show_notices()
    try:
        _run()
    except SystemExit as end:
        if not LEFT_BEHIND:
            raise
        sys.stdout.flush()
        os._exit(int(end.code or 0))


def _run() -> None:
    try:
        app()
    except UserError as error:
        show_traceback(error)
        print(printable(f"nas: {error}"), file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if place_of(error) is None:  # ours to trace
            raise
        show_traceback(error)
        print(printable(f"nas: {reason_of(error)}. `nas --debug` has the traceback."), file=sys.stderr)
        sys.exit(2)


@app.callback()
def _debug(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of what is told in a line."),
) -> None:
    if debug:
        os.environ[DEBUG] = "1"


def _add(name: str, door: Callable[..., Any], show: Callable[..., None], *, check: Any = None, **called: str) -> None:
    app.command(name=name)(command(door, show, check, **called))


_add("search", search, show.front, check=show.check)
_add("evaluate", evaluate, show.row, check=show.check)
_add("audit", audit, show.audit, check=show.check)
_add("retrofit", retrofit, show.row, check=show.check, task="own_task")
_add("compare", compare, show.comparison, check=show.check, arch="archs", topology="topologies")
_add("cost", cost, show.costs, check=show.check)
_add("profile", profile, show.profile, check=show.check)
_add("export", export, show.export, study="from_study", task="own_task")
_add("results", load, results.query_rows, check=show.check)
_add("front", load, show.front, check=show.check)
_add("report", load, show.report, check=show.check, study="from_study")
_add("dashboard", dashboard.copied, dashboard.serve)
_add("list", listing.everything, listing.show)
_add("reproduce", reproduce.compared, reproduce.show)
