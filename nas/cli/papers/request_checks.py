"""Checks of a `nas reproduce` request, without loading PyTorch."""

from pathlib import Path

from nas.cli.options import PaperQuantity
from results.records import published
from search_spaces.support.errors import UserError

FIGURE_PAPERS = ("ancre", "dca")
"""Papers whose figures of linear networks are trained here."""


def check_request(
    what: PaperQuantity, paper: str | None, preset: str | None, study: str | None, plot: Path | None
) -> None:
    """Raise UserError for an unknown paper, a preset where nothing is trained, or a plot where nothing is drawn."""
    if paper is not None:
        published.lines_of(paper)  # raises for an unknown paper
    if plot is not None and what is not PaperQuantity.FIGURES:
        message = f"--plot applies to figures only, got --plot {plot} for {what}. Leave it out."
        raise UserError("conflict", message, option="--plot", path=str(plot), what=what.value)
    if what is PaperQuantity.CLAIMS and preset is None and study is not None:
        message = f"--study needs a --preset to train with, got {study!r}. Give --preset, or leave --study out."
        raise UserError("missing-value", message, option="--preset", needed_by="--study", study=study)
    if what is not PaperQuantity.CLAIMS and preset is not None:
        message = f"--preset applies to claims only, got --preset {preset} for {what}. Leave it out."
        raise UserError("conflict", message, option="--preset", value=preset, what=what.value)
    if what is PaperQuantity.FIGURES and paper not in (None, *FIGURE_PAPERS):
        message = f"`nas reproduce figures` does not cover --paper {paper}. Choose from: {', '.join(FIGURE_PAPERS)}."
        raise UserError("unsupported", message, option="--paper", value=paper, choices=FIGURE_PAPERS, what="figures")
