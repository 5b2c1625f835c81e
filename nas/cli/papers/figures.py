"""`nas reproduce figures`: curves that papers draw, trained again."""

from pathlib import Path
from typing import Any

from nas.cli.papers.claims import one_thread
from nas.papers.figures import low_rank, shortcut_layouts
from nas.papers.figures.panels import draw_figure
from nas.report import tables
from nas.report.format import check_figure_path
from nas.report.plots import save_figure
from search_spaces.support.progress import status_if_slow


def records(paper: str | None, plot: Path | None) -> list[dict[str, Any]]:
    """Return one record for each point of every curve; draw the curves if `plot` is given.

    Raises:
        UserError: A picture that cannot be written.
    """
    check_figure_path(plot)
    panels = []
    with one_thread():
        for name, build_panels in (("ancre", shortcut_layouts.panels), ("dca", low_rank.panels)):
            if paper in (None, name):
                with status_if_slow(f"training the linear networks of {name}'s figures ..."):
                    panels += build_panels()
    if plot is not None:
        save_figure(draw_figure(panels), plot)
    return [record for panel in panels for record in panel.records()]


def print_table(records: list[dict[str, Any]]) -> None:
    """Print the last point of each curve."""
    ends: dict[tuple[str, ...], dict[str, Any]] = {}
    for record in records:
        ends[record["paper"], record["figure"], record["network"]] = record  # keeps the last point of a curve
    headings = ("paper", "figure", "network", "at", "log10 loss")
    lines = []
    for name, record in ends.items():
        at = f"{record['steps']} steps" if "steps" in record else f"{record['layers']} layers"
        lines.append((*name, at, f"{record['log10_loss']:.2f}±{record['log10_loss_se']:.2f}"))
    console = tables.make_console()
    tables.print_texts(console, headings, lines, no_wrap_headings=headings, right=("at",))
    console.print("all points: --format csv; picture: --plot FILE.png", highlight=False)
