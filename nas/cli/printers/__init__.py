"""Printers of the commands' results, on the terminal or to a file. Modules load when a name is first used."""

from typing import TYPE_CHECKING

from search_spaces.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from nas.cli.printers.costs import print_costs, print_profile
    from nas.cli.printers.effects import print_effects
    from nas.cli.printers.evaluations import (
        print_audit,
        print_comparison,
        print_retrofit,
        print_row,
        print_with_plot,
    )
    from nas.cli.printers.files import print_import, print_latents, print_new_file
    from nas.cli.printers.network_files import print_export, print_predictions
    from nas.cli.printers.output_checks import check_output, check_seeds
    from nas.cli.printers.query import print_query
    from nas.cli.printers.studies import print_front, print_report
    from nas.cli.printers.wiring import print_wiring

__all__ = [
    "check_output",
    "check_seeds",
    "print_audit",
    "print_comparison",
    "print_costs",
    "print_effects",
    "print_export",
    "print_front",
    "print_import",
    "print_latents",
    "print_new_file",
    "print_predictions",
    "print_profile",
    "print_query",
    "print_report",
    "print_retrofit",
    "print_row",
    "print_wiring",
    "print_with_plot",
]

_HOMES = {
    "check_output": "output_checks",
    "check_seeds": "output_checks",
    "print_audit": "evaluations",
    "print_comparison": "evaluations",
    "print_costs": "costs",
    "print_effects": "effects",
    "print_export": "network_files",
    "print_front": "studies",
    "print_import": "files",
    "print_latents": "files",
    "print_new_file": "files",
    "print_predictions": "network_files",
    "print_profile": "costs",
    "print_query": "query",
    "print_report": "studies",
    "print_retrofit": "evaluations",
    "print_row": "evaluations",
    "print_wiring": "wiring",
    "print_with_plot": "evaluations",
}

__getattr__, __dir__ = lazy_exports(__name__, {name: f"{__name__}.{module}" for name, module in _HOMES.items()})
